/* SPDX-License-Identifier: Apache-2.0 */
/* See gnuplot.h. The script and what gnuplot says are unnamed files: gnuplot reads a pipe byte by byte, a file in
 * blocks, and neither side waits for the other. */
#include "plots/gnuplot.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/mem.h"

char *sh_gnuplot_find(void)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        int length = (int)strcspn(at, ":");
        char *path = xasprintf("%.*s/gnuplot", length, at);
        struct stat s;
        if (length && stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0)
            return path;
        free(path);
        at += length + (at[length] == ':');
    }
    return NULL;
}

char *sh_gnuplot_need(const char *what, struct sh_err *e)
{
    char *program = sh_gnuplot_find();
    if (!program) {
        sh_absent(e, "%s: gnuplot is needed to draw it and is not on PATH", what);
        sh_hint(e, "install gnuplot (Debian: gnuplot-nox)");
    }
    return program;
}

/* Starts the program with these three streams; 0 or an errno. SIGPIPE and the signal mask are set
 * to what a program expects, whatever the caller did to its own. */
static int start(const char *program, int in, int out, int err, pid_t *pid)
{
    char *const argv[] = {"gnuplot", "-d", "/dev/stdin", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawn(pid, program, &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* The first line that says something: not empty, not the echo of a command, not the caret under it,
 * not a warning. "" if there is none. */
static void first_complaint(FILE *said, char *line, int bytes)
{
    rewind(said);
    while (fgets(line, bytes, said)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c; c++)
            *c = (char)((unsigned char)*c < 32 ? ' ' : *c);
        size_t blank = strspn(line, " ^");
        if (line[blank] && strncmp(line, "gnuplot>", 8) != 0 && !strstr(line, "warning:")) {
            memmove(line, line + blank, strlen(line + blank) + 1);
            return;
        }
    }
    line[0] = '\0';
}

static int judge(int status, FILE *said, struct sh_err *e)
{
    char line[400];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    first_complaint(said, line, (int)sizeof line);
    if (WIFSIGNALED(status))
        return sh_fail(e, "gnuplot was killed by signal %d", WTERMSIG(status));
    if (strstr(line, "unknown or ambiguous terminal type")) {
        sh_absent(e, "the gnuplot on PATH cannot draw files of this kind");
        return sh_hint(e, "choose another ending for -o, or install a gnuplot with cairo and lua");
    }
    if (line[0])
        return sh_fail(e, "gnuplot failed: %s", line);
    return sh_fail(e, "gnuplot failed with exit status %d and no message", WEXITSTATUS(status));
}

int sh_gnuplot_run(const char *program, const char *script, size_t script_bytes, int out_fd, struct sh_err *e)
{
    int status = 0, bad = -1;
    pid_t pid;
    FILE *in = tmpfile(), *said = tmpfile();
    if (!in || !said || fwrite(script, 1, script_bytes, in) != script_bytes || fflush(in)) {
        sh_fail(e, "cannot write a temporary file for gnuplot: %s", strerror(errno));
    } else {
        rewind(in);
        int failed = start(program, fileno(in), out_fd, fileno(said), &pid);
        while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        bad = failed ? sh_fail(e, "cannot start %s: %s", program, strerror(failed)) : judge(status, said, e);
    }
    if (in)
        fclose(in);
    if (said)
        fclose(said);
    return bad;
}
