/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/progress.h"

enum { ENOUGH = 100000 };

static int open_engines(struct sh_calibrate *c, const char *engines, struct sh_err *e)
{
    struct sh_capacity_words words = {.n = SH_N_SCHED};
    if (engines && sh_capacity_split("--engine", engines, &words, e))
        return -1;
    for (int i = 0; i < words.n; i++) {
        struct sh_engine g;
        if (sh_engine_open(engines ? words.at[i] : sh_scheduler_names[i], &g, e))
            return -1;
        if (c->has_engine[g.scheduler])
            return sh_misused(e, "--engine: found two of %s, expected one", sh_scheduler_names[g.scheduler]);
        c->has_engine[g.scheduler] = 1;
        c->engine[g.scheduler] = g;
    }
    return 0;
}

/* The model of a name: of a catalogue, or a config.json in configs/ next to the file. */
static int find_shape(struct sh_calibrate *c, const char *name, const struct sh_kv_shape **out, struct sh_err *e)
{
    char at[256];
    for (int i = 0; i < c->n_shape; i++)
        if (!strcmp(c->shape_of[i], name)) {
            *out = &c->shape[i];
            return 0;
        }
    char *path = xasprintf("%s/configs/%s.json", c->runs.folder, name);
    int is_file = !strchr(name, '/') && !sh_catalog_find(&c->names.models, name, at) && !access(path, R_OK);
    int bad = sh_capacity_model(&c->names, is_file ? path : name, 0, &c->shape[c->n_shape], e);
    free(path);
    if (bad)
        return -1;
    c->shape_of[c->n_shape] = name;
    *out = &c->shape[c->n_shape++];
    return 0;
}

static int look_up(struct sh_calibrate *c, struct sh_err *e)
{
    c->at = xcalloc((size_t)c->runs.n + 1, sizeof *c->at);
    c->shape = xcalloc((size_t)c->runs.n + 1, sizeof *c->shape);
    c->shape_of = xcalloc((size_t)c->runs.n + 1, sizeof *c->shape_of);
    for (int i = 0; i < c->runs.n; i++) {
        const struct sh_serving_run *r = &c->runs.run[i];
        struct sh_calibrate_run *to = &c->at[i];
        to->run = r;
        if (!c->has_engine[r->engine])
            return sh_misused(e, "run %d was measured on %s, which --engine does not name", i + 1,
                              sh_scheduler_names[r->engine]);
        if (find_shape(c, r->model, &to->shape, e) || sh_capacity_board(&c->names, r->gpu, 0, &to->board, e))
            return sh_err_prefix(e, "run %d", i + 1);
        to->is_measured = sh_clock_generation(&to->board, &to->generation);
    }
    return 0;
}

int sh_calibrate_open(struct sh_calibrate *c, const struct sh_list *files, const char *engines,
                      const struct sh_serving_run *server, const char *gpus, const char *models, struct sh_err *e)
{
    *c = (struct sh_calibrate){.n_shape = 0};
    if (open_engines(c, engines, e))
        return -1;
    for (int i = 0; i < files->n; i++)
        if (sh_serving_read(files->at[i], server, &c->runs, e))
            return -1;
    return sh_capacity_names_open(&c->names, gpus, models, e) || look_up(c, e) ? -1 : 0;
}

void sh_calibrate_clear(struct sh_calibrate *c)
{
    for (int i = 0; i < c->n_shape; i++)
        sh_kv_shape_clear(&c->shape[i]);
    free(c->shape);
    free(c->shape_of);
    free(c->at);
    sh_serving_runs_clear(&c->runs);
    sh_capacity_names_close(&c->names);
}

/* Requests to simulate. However many more a benchmark had, the means would not move. 0: not known. */
static uint64_t requests_of(const struct sh_serving_run *r)
{
    int most = r->concurrency > ENOUGH / 10 ? 10 * r->concurrency : ENOUGH;
    return (uint64_t)(r->requests < most ? r->requests : most);
}

/* A catalogue's formats, unless the run says which. */
static int predict(struct sh_calibrate *c, struct sh_calibrate_run *at, struct sh_loop_result *result,
                   struct sh_err *e)
{
    const struct sh_serving_run *r = at->run;
    struct sh_capacity_args a = {.weights = *r->weights ? r->weights : NULL, .windows = "model", .pp = 1, .ep = 1,
                                 .weights_attention = *r->attention ? r->attention : NULL, .page = 16, .length = 1,
                                 .chunk = r->chunk, .util = -1, .reserve = -1, .bandwidth = -1, .flops = -1};
    struct sh_capacity_settings t = {.util = 1};
    struct sh_capacity_question q = {at->shape, NULL, &at->board, *r->kv ? r->kv : "f16", NULL, r->tp};
    struct sh_clock_layout l = {r->tp, r->ep, r->dp, r->pp};
    struct sh_serving s;
    if (sh_serving_open(&a, &t, &q, &c->engine[r->engine], &l, &s, e))
        return -1;
    if (r->poll)
        s.poll = s.poll_busy = (uint32_t)r->poll;
    struct sh_loop_ask loop = sh_serving_loop(&s, (uint32_t)r->concurrency, requests_of(r));
    loop.stopped = sh_interrupted;
    loop.prompt = (struct sh_lengths){SH_SPREAD_UNIFORM, r->prompt_low, r->prompt_high};
    loop.output = (struct sh_lengths){SH_SPREAD_UNIFORM, r->output_low, r->output_high};
    int bad = sh_closed_loop(&loop, result, e);
    at->ttft_s = sh_quantile_mean(&result->ttft);
    at->tpot_s = sh_quantile_mean(&result->tpot);
    sh_serving_clear(&s);
    return bad;
}

int sh_calibrate_predict(struct sh_calibrate *c, int skip, struct sh_err *e)
{
    struct sh_loop_result *result = xmalloc(sizeof *result);
    int bad = 0;
    for (int i = 0; i < c->runs.n && !bad; i++) {
        bad = predict(c, &c->at[i], result, e);
        if (bad)
            c->at[i].ttft_s = c->at[i].tpot_s = (double)NAN;
        if (bad)
            sh_err_prefix(e, "run %d", i + 1);
        bad = bad && !skip;
        if (!bad && sh_interrupted())
            bad = sh_fail(e, "interrupted");
    }
    free(result);
    return bad;
}

struct sh_calibrate_error sh_calibrate_error(const struct sh_calibrate *c)
{
    struct sh_calibrate_error x = {0, 0, 0, 0};
    for (int i = 0; i < c->runs.n; i++) {
        const struct sh_calibrate_run *r = &c->at[i];
        if (isnan(r->tpot_s))
            continue;
        x.tpot += fabs(r->tpot_s / r->run->tpot_s - 1);
        x.tpot_n++;
        if (isnan(r->run->ttft_s))
            continue;
        x.ttft += fabs(r->ttft_s / r->run->ttft_s - 1);
        x.ttft_n++;
    }
    x.tpot = x.tpot_n ? x.tpot / x.tpot_n : (double)NAN;
    x.ttft = x.ttft_n ? x.ttft / x.ttft_n : (double)NAN;
    return x;
}
