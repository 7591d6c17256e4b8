/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the cases (test_emu.h); TAP. */
#include "tests/emu/test_emu.h"

#include <cuda_runtime.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    _exit(1);
}

void *device_copy(const void *from, size_t bytes)
{
    void *at;
    EXPECT(cudaMalloc(&at, bytes) == cudaSuccess);
    EXPECT(cudaMemcpy(at, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    return at;
}

void host_copy(void *to, const void *device, size_t bytes)
{
    EXPECT(cudaMemcpy(to, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

/* What the child says goes to `said`; its status comes back. */
static int run_child(const Case *c, char *said, size_t bytes)
{
    int end[2], status = -1;
    if (pipe(end))
        return status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        alarm(60);                      /* a case that hangs is broken */
        c->run();
        _exit(0);
    }
    close(end[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(end[0], said + used, bytes - 1 - used)) > 0)
        used += (size_t)n;
    said[used] = '\0';
    close(end[0]);
    return waitpid(child, &status, 0) == child ? status : -1;
}

/* The parts, between '|', come one after another in a line that begins with "emu: ". */
static bool says(const char *said, const char *parts)
{
    const char *at = strstr(said, "emu: ");
    while (at && *parts) {
        char part[200];
        size_t n = strcspn(parts, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, parts);
        at = strstr(at, part);
        at = at ? at + n : nullptr;
        parts += n + (parts[n] == '|');
    }
    return at != nullptr;
}

static bool passes(const Case *c)
{
    char said[20000];
    int status = run_child(c, said, sizeof said);
    bool good = c->dies_with ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && says(said, c->dies_with)
                             : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (char *line = said, *end; !good && (end = strchr(line, '\n')); line = end + 1)
        printf("# %.*s\n", (int)(end - line), line);
    return good;
}

int main()
{
    unsetenv("SH_EMU_STREAMS");                         /* each case says what it needs */
    unsetenv("SH_EMU_PAGEABLE");
    unsetenv("SH_EMU_PINNED");
    const Case *lists[] = {device_cases, runtime_cases, stream_cases, fault_cases};
    int n = 0, bad = 0, all = 0;
    for (const Case *list : lists)
        for (const Case *c = list; c->name; c++)
            all++;
    printf("1..%d\n", all);
    for (const Case *list : lists)
        for (const Case *c = list; c->name; c++) {
            bool good = passes(c);
            bad += !good;
            printf("%s %d - %s\n", good ? "ok" : "not ok", ++n, c->name);
        }
    return bad != 0;
}
