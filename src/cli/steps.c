/* SPDX-License-Identifier: Apache-2.0 */
/* See steps.h. */
#include "src/cli/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "src/cli/commands.h"

enum { MOST_ARGS = 120, COMMON_ARGS = 5 };

struct words {
    char *at[MOST_ARGS + 1];
    int n;
};

static const struct sh_step_name *find(const struct sh_steps *s, char letter)
{
    const struct sh_step_name *n = s->name;
    while (n->letter && n->letter != letter)
        n++;
    return n->letter ? n : NULL;
}

static void add(struct words *w, char *word)
{
    if (w->n < MOST_ARGS - COMMON_ARGS)
        w->at[w->n++] = word;
    else
        free(word);
}

/* One word of a step, with its names replaced by their values. */
static void expand(const struct sh_steps *s, const char *word, struct words *w)
{
    const struct sh_step_name *alone = word[0] == '%' && word[1] && !word[2] ? find(s, word[1]) : NULL;
    for (int i = 0; alone && i < alone->n; i++)
        add(w, xstrdup(alone->value[i]));
    if (alone)
        return;
    char *out = xstrdup("");
    for (const char *p = word, *mark; *p; p = mark) {
        mark = strchr(p, '%') ? strchr(p, '%') : p + strlen(p);
        const struct sh_step_name *n = *mark && mark[1] != '%' ? find(s, mark[1]) : NULL;
        if (n && !n->n) {
            free(out);
            return;
        }
        const char *value = n ? n->value[0] : *mark ? "%" : "";
        char *longer = xasprintf("%s%.*s%s", out, (int)(mark - p), p, value);
        free(out);
        out = longer;
        mark += *mark ? 2 : 0;
    }
    add(w, out);
}

static void split(const struct sh_steps *s, const char *line, struct words *w)
{
    char *copy = xstrdup(line), *rest = copy, *word;
    w->n = 0;
    while ((word = strsep(&rest, " ")))
        expand(s, word, w);
    free(copy);
}

/* Common options passed on to a step; of these only the seed affects the results. */
static void add_common(const struct sh_common *c, struct words *w)
{
    if (c->seed) {
        w->at[w->n++] = xstrdup("--seed");
        w->at[w->n++] = xasprintf("%lld", c->seed);
    }
}

static void add_manner(const struct sh_common *c, struct words *w)
{
    if (c->threads != sh_team_threads()) {
        w->at[w->n++] = xstrdup("--threads");
        w->at[w->n++] = xasprintf("%lld", c->threads);
    }
    if (c->quiet)
        w->at[w->n++] = xstrdup("-q");
}

static void release(struct words *w)
{
    for (int i = 0; i < w->n; i++)
        free(w->at[i]);
    w->n = 0;
}

char *sh_step_line(const struct sh_steps *s, const struct sh_command_step *step)
{
    struct words w;
    split(s, step->line, &w);
    add_common(s->common, &w);
    char *line = sh_args_typed(w.at[0], w.n - 1, w.at + 1);
    release(&w);
    return line;
}

/* Does the file begin with "$ shears <line>"? */
static int is_done(const char *path, const char *line)
{
    FILE *f = sh_stream_open(path, NULL);
    char *first = NULL;
    size_t room = 0;
    ssize_t n = f ? xgetline(&first, &room, strlen(line) + 10, f) : -1;
    if (f)
        fclose(f);
    if (n > 0 && first[n - 1] == '\n')
        first[n - 1] = '\0';
    int same = n > 0 && !strncmp(first, "$ shears ", 9) && !strcmp(first + 9, line);
    free(first);
    return same;
}

/* Redirects standard output to this file while a step runs; returns the saved descriptor or -1. */
static int divert(const char *path)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (saved < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
        if (saved >= 0)
            close(saved);
        saved = -1;
    }
    if (fd >= 0)
        close(fd);
    return saved;
}

/* 0, or -1 if not everything was written. */
static int restore(int saved)
{
    int bad = fflush(stdout) || ferror(stdout);
    clearerr(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    return bad ? -1 : 0;
}

/* Re-running a step invalidates the steps after it. Their outputs are removed before this one is renamed to its final
 * name, so that a run killed in between repeats the step. */
static void undo(const struct sh_steps *s, const struct sh_command_step *step)
{
    for (; step->line; step++) {
        char *path = xasprintf("%s/%s", s->folder, step->output);
        unlink(path);
        free(path);
    }
}

/* Runs the command with its output in `part`, which is renamed to `path` on success. */
static int run(const struct sh_steps *s, const struct sh_command_step *step, struct words *w, const char *line,
               const char *part, const char *path, struct sh_err *e)
{
    int saved = divert(part), status = -1;
    if (saved < 0)
        return sh_fail(e, "%s: cannot be written: %s", part, strerror(errno));
    printf("$ shears %s\n", line);
    status = sh_command_run(sh_command_find(w->at[0]), w->n - 1, w->at + 1);
    int bad = restore(saved);
    if (sh_interrupted())
        return sh_fail(e, "interrupted: run %s again to resume", s->again);
    if (!bad && status == SH_OK && s->keeps)
        undo(s, step);
    if (bad || (status == SH_OK && rename(part, path)))
        return sh_fail(e, "%s: cannot be written: %s", path, strerror(errno));
    if (status != SH_OK)
        unlink(part);
    return status;
}

int sh_steps_run(struct sh_steps *s, const struct sh_command_step *step, struct sh_err *e)
{
    struct words w;
    int status = SH_OK;
    if (step->draws && s->gnuplot_absent)
        return SH_ABSENT;
    char *path = xasprintf("%s/%s", s->folder, step->output), *part = xasprintf("%s.part", path);
    char *line = sh_step_line(s, step);
    if (s->keeps && !s->anew && is_done(path, line)) {
        s->known++;
    } else {
        split(s, step->line, &w);
        add_common(s->common, &w);
        add_manner(s->common, &w);
        if (!s->common->quiet)
            sh_say("$ shears ", line);
        status = run(s, step, &w, line, part, path, e);
        s->anew |= status == SH_OK;
        s->done += status == SH_OK;
        s->gnuplot_absent |= step->draws && status == SH_ABSENT;
        release(&w);
    }
    free(path);
    free(part);
    free(line);
    return status;
}

int sh_step_texts(const struct sh_list *text, const char *jsonl, const char *field, const char **to)
{
    int n = 0;
    to[n++] = jsonl ? "--jsonl" : "--text";
    if (jsonl) {
        to[n++] = jsonl;
        to[n++] = "--field";
        to[n++] = field;
    }
    for (int i = 0; i < text->n; i++)
        to[n++] = text->at[i];
    return n;
}
