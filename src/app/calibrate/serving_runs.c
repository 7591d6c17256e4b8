/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/calibrate/serving_runs.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/workload.h"
#include "src/base/file.h"
#include "src/base/mem.h"

enum { MOST_COLUMNS = 64 };
#define MOST_BYTES ((size_t)64 << 20)

#define F(name) offsetof(struct sh_serving_run, name)
enum kind { WORD, WHOLE, MILLISECONDS, ENGINE, CLIENT };

static const struct column { const char *name; enum kind kind; size_t field; double most; int is_needed; } columns[] = {
    {"id", WORD, F(id), SH_RUN_WORD, 0}, {"model", WORD, F(model), SH_RUN_WORD, 1},
    {"gpu", WORD, F(gpu), SH_RUN_WORD, 1}, {"engine", ENGINE, F(engine), 0, 1}, {"version", WORD, F(version), 48, 0},
    {"weights", WORD, F(weights), 48, 0}, {"attn", WORD, F(attention), 48, 0}, {"kv", WORD, F(kv), 48, 0},
    {"isl_min", WHOLE, F(prompt_low), SH_REQUEST_TOKENS / 2, 0},
    {"isl", WHOLE, F(prompt_high), SH_REQUEST_TOKENS / 2, 1},
    {"osl_min", WHOLE, F(output_low), SH_REQUEST_TOKENS / 2, 0},
    {"osl", WHOLE, F(output_high), SH_REQUEST_TOKENS / 2, 1}, {"concurrency", WHOLE, F(concurrency), 100000, 1},
    {"tp", WHOLE, F(tp), 1024, 0}, {"ep", WHOLE, F(ep), 1024, 0}, {"dp", WHOLE, F(dp), 1024, 0},
    {"pp", WHOLE, F(pp), 64, 0}, {"chunk", WHOLE, F(chunk), SH_REQUEST_TOKENS, 0}, {"recv", WHOLE, F(poll), 1000, 0},
    {"ttft_ms", MILLISECONDS, F(ttft_s), 1e9, 0}, {"tpot_ms", MILLISECONDS, F(tpot_s), 1e9, 1},
    {"client", CLIENT, 0, 0, 0}};

enum { N_COLUMN = sizeof columns / sizeof *columns };

void sh_serving_append(struct sh_serving_runs *out, const struct sh_serving_run *run)
{
    if (!(out->n & (out->n - 1)))
        out->run = xreallocarray(out->run, out->n ? 2 * (size_t)out->n : 1, sizeof *out->run);
    out->run[out->n++] = *run;
}

void sh_serving_runs_clear(struct sh_serving_runs *r)
{
    free(r->run);
    free(r->folder);
    *r = (struct sh_serving_runs){0};
}

int sh_serving_check(struct sh_serving_run *r, struct sh_err *e)
{
    int *const one[] = {&r->tp, &r->ep, &r->dp, &r->pp};
    for (int i = 0; i < 4; i++)
        *one[i] = *one[i] ? *one[i] : 1;
    r->prompt_low = r->prompt_low ? r->prompt_low : r->prompt_high;
    r->output_low = r->output_low ? r->output_low : r->output_high;
    if (!*r->model || !*r->gpu) {
        sh_fail(e, "the %s is missing", *r->model ? "GPU" : "model");
        return sh_hint(e, "a table has it in a column; for a JSON file, give --model NAME and --gpu NAME");
    }
    if (r->prompt_high < 1 || r->output_high < 2 || r->prompt_low > r->prompt_high || r->output_low > r->output_high)
        return sh_fail(e, "found prompts of %d to %d and answers of %d to %d tokens, expected at least 1 and 2",
                       r->prompt_low, r->prompt_high, r->output_low, r->output_high);
    if (r->concurrency < 1)
        return sh_fail(e, "found %d clients, expected at least 1", r->concurrency);
    if (!(r->tpot_s > 0) || (!isnan(r->ttft_s) && !(r->ttft_s > 0)))
        return sh_fail(e, "found times of %g s to the first and %g s for each further token, expected more than 0",
                       r->ttft_s, r->tpot_s);
    return 0;
}

static int value(const struct column *c, const char *text, struct sh_serving_run *r, struct sh_err *e)
{
    char *end, *to = (char *)r + c->field;
    if (!strcmp(text, "-"))
        return 0;
    if (c->kind == WORD) {
        int n = snprintf(to, (size_t)c->most, "%s", text);
        return n < 1 || n >= (int)c->most ? sh_fail(e, "%s: found %d letters, expected 1 to %d", c->name, n,
                                                    (int)c->most - 1) : 0;
    }
    if (c->kind == ENGINE) {
        for (int i = 0; i < SH_N_SCHED; i++)
            if (!strcmp(text, sh_scheduler_names[i])) {
                r->engine = (enum sh_scheduler)i;
                return 0;
            }
        return sh_fail(e, "engine: found \"%.40s\", expected vllm, sglang or trtllm", text);
    }
    if (c->kind == CLIENT) {
        r->ttft_s = strcmp(text, "unknown") ? r->ttft_s : (double)NAN;
        return 0;
    }
    double x = strtod(text, &end);
    if (end == text || *end || !(x > 0) || x > c->most || (c->kind == WHOLE && x != floor(x)))
        return sh_fail(e, "%s: found \"%.40s\", expected a %s above 0, at most %g", c->name, text,
                       c->kind == WHOLE ? "whole number" : "number", c->most);
    if (c->kind == WHOLE)
        *(int *)(void *)to = (int)x;
    else
        *(double *)(void *)to = x / 1000;
    return 0;
}

struct table { int n, at[MOST_COLUMNS]; };      /* at: of `columns`; -1: ignored */

/* The next field of a line; NULL after the last. */
static char *field(char **at)
{
    return strsep(at, "\t");
}

static int header(char *line, struct table *t, struct sh_err *e)
{
    int seen[N_COLUMN] = {0};
    for (char *word; (word = field(&line)); t->n++) {
        if (t->n == MOST_COLUMNS)
            return sh_fail(e, "found more than %d columns", MOST_COLUMNS);
        t->at[t->n] = -1;
        for (int i = 0; i < N_COLUMN; i++)
            if (!strcmp(word, columns[i].name)) {
                if (seen[i]++)
                    return sh_fail(e, "column %s: found twice", word);
                t->at[t->n] = i;
            }
    }
    for (int i = 0; i < N_COLUMN; i++)
        if (columns[i].is_needed && !seen[i])
            return sh_fail(e, "the column %s is missing; columns are separated by tabs", columns[i].name);
    return 0;
}

static int row(char *line, const struct table *t, const struct sh_serving_run *server, struct sh_serving_runs *out,
               struct sh_err *e)
{
    struct sh_serving_run r = *server;
    int n = 0, client = -1;
    char *word, *of_client = NULL;
    for (; (word = field(&line)); n++) {
        if (n == t->n)
            return sh_fail(e, "found more fields than the %d that the first line names", t->n);
        if (t->at[n] >= 0 && columns[t->at[n]].kind == CLIENT) {
            client = t->at[n];
            of_client = word;
        } else if (t->at[n] >= 0 && value(&columns[t->at[n]], word, &r, e)) {
            return -1;
        }
    }
    if (n != t->n)
        return sh_fail(e, "found %d fields, expected the %d that the first line names", n, t->n);
    if ((of_client && value(&columns[client], of_client, &r, e)) || sh_serving_check(&r, e))
        return -1;
    if (out->n == SH_RUNS)
        return sh_fail(e, "found more than %d runs", SH_RUNS);
    sh_serving_append(out, &r);
    return 0;
}

static int read_table(const char *path, char *text, const struct sh_serving_run *server, struct sh_serving_runs *out,
                      struct sh_err *e)
{
    struct table t = {.n = 0};
    int line = 0;
    for (char *at = text, *one; (one = strsep(&at, "\n")); ) {
        size_t n = strlen(one);
        line++;
        if (n && one[n - 1] == '\r')
            one[n - 1] = '\0';
        if (!*one || *one == '#')
            continue;
        if (t.n ? row(one, &t, server, out, e) : header(one, &t, e))
            return sh_err_prefix(e, "%s: line %d", path, line);
    }
    return t.n ? 0 : sh_fail(e, "%s: found no rows", path);
}

int sh_serving_read(const char *path, const struct sh_serving_run *server, struct sh_serving_runs *out,
                    struct sh_err *e)
{
    size_t bytes;
    int first = out->n;
    char *text = sh_file_read(path, MOST_BYTES, &bytes, e);
    if (!text)
        return -1;
    const char *slash = strrchr(path, '/');
    if (!out->folder)
        out->folder = slash ? xasprintf("%.*s", (int)(slash - path), path) : xstrdup(".");
    const char *start = text + strspn(text, " \t\r\n");
    int bad;
    if (strlen(text) != bytes)
        bad = sh_fail(e, "%s: found a zero byte, expected text", path);
    else if (*start == '{' || *start == '[')
        bad = sh_serving_read_json(path, text, bytes, server, out, e);
    else
        bad = read_table(path, text, server, out, e);
    free(text);
    if (!bad && out->n == first)
        bad = sh_fail(e, "%s: found no runs", path);
    return bad;
}
