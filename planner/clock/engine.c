/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. */
#include "planner/clock/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/catalog/catalog.h"

const char *const sh_generation_names[SH_N_GEN] = {"hopper", "blackwell"};
const char *const sh_scheduler_names[SH_N_SCHED] = {"vllm", "sglang", "trtllm"};

const struct sh_clock_key sh_clock_keys[SH_N_CLOCK_CONSTANT] = {
#define X(name, unit, low, high, text) {#name, unit, text, low, high},
    SH_CLOCK_CONSTANTS(X)
#undef X
};

const struct sh_clock_key sh_engine_rules[SH_N_RULE] = {
    {"chunk", "tokens", "most tokens of a step", 1, 1 << 20},
    {"sequences", "", "most sequences that run at once", 1, 1e6},
    {"memory", "1", "share of the GPU's memory that the engine takes", 0.01, 1},
    {"poll", "steps", "decoding steps between checks for new requests", 1, 1000},
    {"poll_busy", "steps", "the same with 16 or more clients", 1, 1000}};

enum { FIELDS = 8 };

/* A row's fields, cut at tabs in a copy. */
struct row {
    char text[1024];
    int n;
    char *at[FIELDS];
};

static int cut(const char *line, struct row *r, struct sh_err *e)
{
    size_t n = strcspn(line, "\r\n");
    r->n = 0;
    if (n >= sizeof r->text)
        return sh_fail(e, "found %zu letters, expected fewer than %zu", n, sizeof r->text);
    memcpy(r->text, line, n);
    r->text[n] = '\0';
    for (char *at = r->text; ; at++) {
        if (r->n == FIELDS)
            return sh_fail(e, "found more than %d fields", FIELDS);
        r->at[r->n++] = at;
        at += strcspn(at, "\t");
        if (!*at)
            return 0;
        *at = '\0';
    }
}

static int number(const char *text, double low, double high, double *to, struct sh_err *e)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= low && x <= high))
        return sh_fail(e, "found \"%.40s\", expected a number from %g to %g", text, low, high);
    *to = x;
    return 0;
}

/* A number for each generation. */
static int numbers(const struct row *r, const struct sh_clock_key *keys, int n, double *to, int stride,
                   struct sh_err *e)
{
    int k = 0;
    while (k < n && (r->n < 2 || strcmp(r->at[1], keys[k].name)))
        k++;
    if (k == n)
        return sh_fail(e, "unknown %s \"%.40s\"", r->at[0], r->n < 2 ? "" : r->at[1]);
    if (r->n < 2 + SH_N_GEN)
        return sh_fail(e, "%s: found %d numbers, expected %d, separated by tabs", keys[k].name, r->n - 2, SH_N_GEN);
    if (!isnan(to[k]))
        return sh_fail(e, "%s: found twice", keys[k].name);
    for (int g = 0; g < SH_N_GEN; g++)
        if (number(r->at[2 + g], keys[k].low, keys[k].high, &to[g * stride + k], e))
            return sh_err_prefix(e, "%s", keys[k].name);
    return 0;
}

static int one_of(const char *what, const char *word, const char *const *names, int n, int *to, struct sh_err *e)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(word, names[i])) {
            *to = i;
            return 0;
        }
    return sh_fail(e, "%s: found \"%.40s\", expected one of %s to %s", what, word, names[0], names[n - 1]);
}

static int error_row(const struct row *r, struct sh_engine *g, struct sh_err *e)
{
    double runs, tpot, ttft = NAN;
    int gen = 0;
    if (r->n != 6 || g->n_error == SH_ENGINE_ERRORS)
        return sh_fail(e, "error: found %d fields in row %d, expected 6 in at most %d rows", r->n, g->n_error + 1,
                       SH_ENGINE_ERRORS);
    if (one_of("error", r->at[1], sh_generation_names, SH_N_GEN, &gen, e) || number(r->at[3], 1, 1e9, &runs, e) ||
        number(r->at[4], 0, 1e4, &tpot, e) || (strcmp(r->at[5], "-") && number(r->at[5], 0, 1e4, &ttft, e)))
        return -1;
    struct sh_engine_error *to = &g->error[g->n_error++];
    *to = (struct sh_engine_error){(enum sh_generation)gen, "", (int)runs, tpot / 100, ttft / 100};
    snprintf(to->kind, sizeof to->kind, "%s", r->at[2]);
    return 0;
}

static int text(const struct row *r, char to[SH_ENGINE_TEXT], struct sh_err *e)
{
    if (r->n != 2 || *to)
        return sh_fail(e, "%s: expected one text, once", r->at[0]);
    snprintf(to, SH_ENGINE_TEXT, "%s", r->at[1]);
    return 0;
}

static int take(const struct row *r, struct sh_engine *g, int *scheduler, struct sh_err *e)
{
    const char *what = r->at[0];
    if (!strcmp(what, "engine"))
        return one_of("engine", r->n > 1 ? r->at[1] : "", sh_scheduler_names, SH_N_SCHED, scheduler, e);
    if (!strcmp(what, "release"))
        return text(r, g->release, e);
    if (!strcmp(what, "fitted"))
        return text(r, g->fitted, e);
    if (!strcmp(what, "rule"))
        return numbers(r, sh_engine_rules, SH_N_RULE, g->rule[0], SH_N_RULE, e);
    if (!strcmp(what, "constant"))
        return numbers(r, sh_clock_keys, SH_N_CLOCK_CONSTANT, g->constant[0], SH_N_CLOCK_CONSTANT, e);
    if (!strcmp(what, "error"))
        return error_row(r, g, e);
    return sh_fail(e, "found \"%.40s\", expected engine, release, fitted, rule, constant, error or #", what);
}

static int whole(const struct sh_engine *g, int scheduler, struct sh_err *e)
{
    if (scheduler < 0)
        return sh_fail(e, "the row \"engine\" is missing");
    for (int k = 0; k < SH_N_RULE; k++)
        if (isnan(g->rule[0][k]))
            return sh_fail(e, "the row \"rule %s\" is missing", sh_engine_rules[k].name);
    for (int k = 0; k < SH_N_CLOCK_CONSTANT; k++)
        if (isnan(g->constant[0][k]))
            return sh_fail(e, "the row \"constant %s\" is missing", sh_clock_keys[k].name);
    return 0;
}

int sh_engine_read(const char *const *rows, const char *path, struct sh_engine *out, struct sh_err *e)
{
    struct sh_engine g = {.n_error = 0};
    struct row r;
    int scheduler = -1;
    for (int k = 0; k < SH_N_GEN; k++) {
        for (int i = 0; i < SH_N_RULE; i++)
            g.rule[k][i] = (double)NAN;
        for (int i = 0; i < SH_N_CLOCK_CONSTANT; i++)
            g.constant[k][i] = (double)NAN;
    }
    for (int i = 0; rows[i]; i++) {
        if (!rows[i][strspn(rows[i], " \t\r\n")] || rows[i][0] == '#')
            continue;
        if (cut(rows[i], &r, e) || take(&r, &g, &scheduler, e))
            return sh_err_prefix(e, "%s: line %d", path, i + 1);
    }
    if (whole(&g, scheduler, e))
        return sh_err_prefix(e, "%s", path);
    g.scheduler = (enum sh_scheduler)scheduler;
    *out = g;
    return 0;
}

int sh_engine_built_in(const char *name, struct sh_engine *out, struct sh_err *e)
{
    static const char *const *const rows[SH_N_SCHED] = {sh_catalog_vllm, sh_catalog_sglang, sh_catalog_trtllm};
    int k = 0;
    if (one_of("--engine", name, sh_scheduler_names, SH_N_SCHED, &k, e))
        return -1;
    return sh_engine_read(rows[k], "built-in engine", out, e);
}

void sh_engine_write(const struct sh_engine *g, const char *remark, FILE *to)
{
    fprintf(to, "# %s\nengine\t%s\nrelease\t%s\nfitted\t%s\n", remark, sh_scheduler_names[g->scheduler], g->release,
            g->fitted);
    for (int k = 0; k < SH_N_RULE; k++) {
        fprintf(to, "rule\t%s", sh_engine_rules[k].name);
        for (int i = 0; i < SH_N_GEN; i++)
            fprintf(to, "\t%.6g", g->rule[i][k]);
        fprintf(to, "\t%s\t%s\n", sh_engine_rules[k].unit, sh_engine_rules[k].meaning);
    }
    for (int k = 0; k < SH_N_CLOCK_CONSTANT; k++) {
        fprintf(to, "constant\t%s", sh_clock_keys[k].name);
        for (int i = 0; i < SH_N_GEN; i++)
            fprintf(to, "\t%.6g", g->constant[i][k]);
        fprintf(to, "\t%s\t%s\n", sh_clock_keys[k].unit, sh_clock_keys[k].meaning);
    }
    for (int i = 0; i < g->n_error; i++) {
        const struct sh_engine_error *x = &g->error[i];
        fprintf(to, "error\t%s\t%s\t%d\t%.1f", sh_generation_names[x->generation], x->kind, x->runs, 100 * x->tpot);
        if (isnan(x->ttft))
            fprintf(to, "\t-\n");
        else
            fprintf(to, "\t%.1f\n", 100 * x->ttft);
    }
}

const struct sh_engine_error *sh_engine_error(const struct sh_engine *g, enum sh_generation gen, const char *kind)
{
    for (int i = 0; i < g->n_error; i++)
        if (g->error[i].generation == gen && !strcmp(g->error[i].kind, kind))
            return &g->error[i];
    return NULL;
}
