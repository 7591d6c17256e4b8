/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: the program's commands, which describe their results instead of printing them. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plots/figure.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "src/cli/commands.h"
#include "src/lib/lib.h"

/* Those whose answer is a description: generate, export, demo, study, reproduce and help print or write files. */
static const struct sh_cmd *const known[] = {
    &sh_cmd_trace, &sh_cmd_info, &sh_cmd_import, &sh_cmd_merge, &sh_cmd_verify, &sh_cmd_persistence, &sh_cmd_replay,
    &sh_cmd_plan, &sh_cmd_theory, &sh_cmd_eval, &sh_cmd_repetition, &sh_cmd_drift, &sh_cmd_capacity, &sh_cmd_simulate,
    &sh_cmd_calibrate, &sh_cmd_report, &sh_cmd_plot, NULL};

static const struct sh_cmd *find(const char *name, struct sh_err *e)
{
    char all[512] = "";
    for (int i = 0; known[i]; i++) {
        if (!strcmp(known[i]->name, name))
            return known[i];
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? "\n" : "", known[i]->name);
    }
    sh_misused(e, "unknown command \"%.80s\"", name);
    sh_hint_near(e, name, strlen(name), all, "shears.h lists the commands");
    return NULL;
}

/* ---- options as a command line ---- */

struct line {
    char **at;
    int n;
};

static void add_word(struct line *l, char *word)
{
    l->at = xreallocarray(l->at, (size_t)l->n + 1, sizeof *l->at);
    l->at[l->n++] = word;
}

static void free_line(struct line *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->at[i]);
    free(l->at);
}

/* Does the option keep every value that it is given? */
static int takes_list(const struct sh_cmd *c, const char *name)
{
    for (const struct sh_opt *o = c->opts; o && o->name; o++)
        if (!strcmp(o->name, name))
            return o->kind == SH_OPT_LIST;
    return 0;
}

/* An option that is repeated and takes one value has all of them there, separated by commas. 1: it was there before. */
static int join(const struct sh_cmd *c, const char *name, const char *value, struct line *l)
{
    size_t n = strlen(name);
    for (int i = 0; i < l->n && value && !takes_list(c, name); i++)
        if (!strncmp(l->at[i] + 2, name, n) && l->at[i][2 + n] == '=') {
            char *longer = xasprintf("%s,%s", l->at[i], value);
            free(l->at[i]);
            l->at[i] = longer;
            return 1;
        }
    return 0;
}

/* Options, then what has no name. */
static int make_line(const struct sh_cmd *c, const struct shears_option *o, struct line *l, struct sh_err *e)
{
    int values = 0;
    for (const struct shears_option *at = o; at && at->name; at++)
        if (!*at->name)
            values++;
        else if (at->name[strspn(at->name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
            return sh_misused(e, "option \"%.60s\": expected only the characters a-z, 0-9 and -",
                              at->name);
        else if (!join(c, at->name, at->value, l))
            add_word(l, at->value ? xasprintf("--%s=%s", at->name, at->value) : xasprintf("--%s", at->name));
    if (values)
        add_word(l, xstrdup("--"));
    for (const struct shears_option *at = o; at && at->name; at++)
        if (!*at->name && !at->value)
            return sh_misused(e, "option \"\": found NULL, expected a value");
        else if (!*at->name)
            add_word(l, xstrdup(at->value));
    return 0;
}

/* ---- one question ---- */

struct asked {
    const struct shears_watch *watch;
    char **remark;                      /* [n]                                                    */
    int n;
};

static int progress(void *to, double share)
{
    const struct asked *a = to;
    return a->watch && a->watch->progress ? a->watch->progress(a->watch->to, share) : 0;
}

static void remark(void *to, const char *text)
{
    struct asked *a = to;
    a->remark = xreallocarray(a->remark, (size_t)a->n + 1, sizeof *a->remark);
    a->remark[a->n++] = xstrdup(text);
}

/* The fields that say how the program prints have the values for a description with everything. */
static int run(const struct sh_cmd *c, const struct line *l, struct sh_common *common, struct sh_err *e)
{
    struct sh_list positional = {0};
    void *args = xcalloc(1, c->args_bytes + 1);
    if (c->defaults)
        memcpy(args, c->defaults, c->args_bytes);
    int bad = sh_args_parse(c, l->n, l->at, common, args, &positional, e);
    if (!bad && common->help)
        bad = sh_misused(e, "--help: is not an option of a question, expected options of %s", c->name);
    common->json = common->quiet = 1;
    common->csv = 0;
    common->columns = NULL;
    bad = bad || c->run(common, args, &positional, e);
    sh_args_free(c, args, &positional);
    return bad ? -1 : 0;
}

/* A reader that has gone, such as gnuplot, and a limit on file sizes are errors of a write, and signals by default.
 * These are kept from the thread while it works. */
struct held {
    sigset_t held, before, pending;
};

static void hold_signals(struct held *h)
{
    sigemptyset(&h->held);
    sigaddset(&h->held, SIGPIPE);
    sigaddset(&h->held, SIGXFSZ);
    sigpending(&h->pending);
    pthread_sigmask(SIG_BLOCK, &h->held, &h->before);
}

static void release_signals(const struct held *h)
{
    static const int all[] = {SIGPIPE, SIGXFSZ};
    const struct timespec now = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, all[i]);
        if (!sigismember(&h->pending, all[i]))
            sigtimedwait(&one, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

struct sh_out *sh_lib_run(const char *command, const struct shears_option *options, const struct shears_watch *watch,
                          const struct sh_policy *policy, struct sh_err *e)
{
    struct line l = {0};
    struct sh_out *out = NULL;
    const struct sh_cmd *c = find(command, e);
    int bad = !c || make_line(c, options, &l, e);
    if (!bad) {
        struct asked asked = {.watch = watch};
        const struct sh_listener listener = {progress, remark, &asked};
        char *typed = sh_args_typed(c->name, l.n, l.at);
        struct sh_common common = {.backend = "auto", .threads = sh_team_threads(), .line = typed, .result = &out,
                                   .policy = policy};
        struct held signals;
        hold_signals(&signals);
        sh_listen(&listener);
        bad = run(c, &l, &common, e);
        sh_listen(NULL);
        release_signals(&signals);
        out = bad || out ? out : sh_out_new();
        for (int i = 0; i < asked.n; i++) {
            if (!bad)
                sh_out_note(out, "%s", asked.remark[i]);
            free(asked.remark[i]);
        }
        free(asked.remark);
        free(typed);
    }
    free_line(&l);
    if (bad && out) {
        sh_out_free(out);
        out = NULL;
    }
    return out;
}

struct shears_result *shears_ask(const char *command, const struct shears_option *options,
                                 const struct shears_watch *watch, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_ask", "a command", command))
        return NULL;
    struct sh_out *o = strcmp(command, "plot") ? sh_lib_run(command, options, watch, NULL, &why) : NULL;
    if (!strcmp(command, "plot"))
        sh_misused(&why, "plot: its answer is a figure"), sh_hint(&why, "shears_figure returns it as SVG");
    if (!o)
        sh_lib_fail(e, &why);
    return o ? sh_lib_result(o) : NULL;
}

/* ---- figures ---- */

/* Which command draws a figure, and the option that names its file. */
static const struct { const char *figure, *command, *option; } drawn[] = {
    {"capacity", "capacity", "plot-memory"}, {"frontier", "capacity", "plot-frontier"},
    {"latency", "simulate", "plot-latency"}, {"occupancy", "simulate", "plot-occupancy"}, {NULL, "plot", "output"}};

/* Draws into a file of a folder of its own, and reads that. */
static char *draw(const char *name, const struct shears_option *options, const struct shears_watch *watch,
                  struct sh_err *e)
{
    int k = 0, n = 0;
    size_t bytes;
    const char *temporary = getenv("TMPDIR");
    while (drawn[k].figure && strcmp(drawn[k].figure, name))
        k++;
    while (options && options[n].name)
        if (!strcmp(options[n++].name, drawn[k].option))
            return sh_misused(e, "--%s: found a file, expected none: the figure is returned as SVG", drawn[k].option),
                   (char *)NULL;
    char *folder = xasprintf("%s/shears-XXXXXX", temporary && *temporary ? temporary : "/tmp"), *svg = NULL;
    if (!mkdtemp(folder)) {
        sh_fail(e, "%s: cannot create a folder for the figure", folder);
        free(folder);
        return NULL;
    }
    char *path = xasprintf("%s/figure.svg", folder);
    struct shears_option *all = xcalloc((size_t)n + 3, sizeof *all);
    if (n)
        memcpy(all, options, (size_t)n * sizeof *all);
    all[n++] = (struct shears_option){drawn[k].option, path};
    if (!drawn[k].figure)
        all[n] = (struct shears_option){"", name};
    struct sh_out *o = sh_lib_run(drawn[k].command, all, watch, NULL, e);
    if (o)
        svg = sh_file_read(path, SH_MOST_TEXT, &bytes, e);
    sh_out_free(o);
    unlink(path);
    rmdir(folder);
    free(all);
    free(path);
    free(folder);
    return svg;
}

char *shears_figure(const char *name, const struct shears_option *options, const struct shears_watch *watch,
                    struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_figure", "a figure's name", name))
        return NULL;
    char *svg = draw(name, options, watch, &why);
    if (!svg)
        sh_lib_fail(e, &why);
    return svg;
}

void shears_text_free(char *text)
{
    free(text);
}
