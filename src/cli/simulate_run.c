/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_run.h. */
#include "src/cli/simulate_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/simulate_rate.h"
#include "src/base/interrupt.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/cli/capacity_plan.h"

/* One cache that is compared: the whole one, a budget, or a plan. */
struct variant {
    const char *name, *budget, *path;
    const struct sh_plan *plan;
};

struct logged {
    FILE *to;
    const char *plan;
    double speed;
};

static void real(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, ",%.9f", x);
    else
        fputc(',', to);
}

/* A name as one CSV field. */
static void quoted(FILE *to, const char *s)
{
    fputc('"', to);
    for (; *s; s++)
        fprintf(to, *s == '"' ? "\"\"" : "%c", *s);
    fputc('"', to);
}

static void log_request(void *to, const struct sh_sim_done *d)
{
    const struct logged *l = to;
    quoted(l->to, l->plan);
    fprintf(l->to, ",%.9g,%llu", l->speed, (unsigned long long)d->number);
    real(l->to, d->request.arrival_s);
    fprintf(l->to, ",%u,%u", d->request.prompt, d->request.output);
    real(l->to, d->admitted_s);
    real(l->to, d->first_s);
    real(l->to, d->finished_s);
    fprintf(l->to, ",%u\n", d->preemptions);
}

static void summary(const struct sh_quantile *q, double to[4])
{
    static const double share[3] = {0.5, 0.9, 0.99};
    for (int i = 0; i < 3; i++)
        to[i] = sh_quantile_at(q, share[i]);
    to[3] = sh_quantile_mean(q);
}

static void fill(const struct sh_sim_result *r, uint64_t pool, struct sh_sim_row *to)
{
    double span = r->last_arrival_s - r->start_s, whole = r->end_s - r->start_s;
    to->rate = span > 0 ? (double)(r->requests - 1) / span : (double)NAN;
    to->requests = r->requests;
    to->finished = r->finished;
    to->refused = r->refused;
    to->preemptions = r->preemptions;
    to->steps = r->steps;
    to->largest_batch = r->largest_batch;
    to->tokens_in = r->tokens_in;
    to->tokens_out = r->tokens_out;
    to->recomputed = r->tokens_recomputed;
    to->pool = pool;
    to->throughput = sh_sim_throughput(r);
    to->goodput = sh_sim_goodput(r);
    to->good_share = (double)r->good / (double)r->requests;
    to->seconds = whole;
    to->busy_share = whole > 0 ? r->busy_s / whole : 0;
    to->running_mean = r->running_mean;
    to->occupancy_mean = r->occupancy_mean;
    to->occupancy_peak = r->occupancy_peak;
    summary(&r->ttft, to->ttft);
    summary(&r->tpot, to->tpot);
    summary(&r->latency, to->latency);
    summary(&r->queue, to->queue);
    to->occupancy = r->occupancy;
}

static struct sh_sim_row *add_row(struct sh_sim_study *s, const struct variant *v)
{
    s->row = xreallocarray(s->row, (size_t)s->n_row + 1, sizeof *s->row);
    struct sh_sim_row *r = &s->row[s->n_row++];
    *r = (struct sh_sim_row){.plan = xstrdup(v->name)};
    r->evidence = v->plan ? sh_capacity_plan_evidence(v->plan, s->model.f.name, 0)
                          : xstrdup(v->budget ? "none: what this budget costs in quality is not measured"
                                              : "whole cache: nothing is evicted");
    return r;
}

/* At each speed; the highest rate is the same for all rows of a cache and looked for once. */
static int run_variant(struct sh_sim_study *s, const struct variant *v, struct sh_sim_cost *c,
                       struct sh_sim_result *r, struct sh_err *e)
{
    struct sh_rate most = {0};
    struct logged log = {s->log, v->name, 1};
    if (s->args->max_rate &&
        sh_sim_rate(&s->ask, c, sh_sim_source_again, &s->source, s->args->goal, r, &most, e))
        return -1;
    for (int i = 0; i < s->source.n; i++) {
        struct sh_sim_ask ask = s->ask;
        struct sh_workload *w = sh_sim_source_again(&s->source, e);
        log.speed = ask.speed = s->source.speed[i];
        ask.done = s->log ? log_request : NULL;
        ask.to = &log;
        if (!w || sh_simulate(&ask, c, w, r, e))
            return -1;
        struct sh_sim_row *row = add_row(s, v);
        fill(r, c->pool, row);
        row->speed = ask.speed;
        row->has_max = s->args->max_rate;
        row->max_is_open = most.is_open;
        row->max_rate = most.requests_per_s;
        row->max_speed = most.speed;
    }
    return 0;
}

static int simulate(struct sh_sim_study *s, const struct variant *v, struct sh_err *e)
{
    struct sh_capacity_question q = {&s->model, NULL, &s->board, s->settings.kv.at[0], v->budget, 1};
    struct sh_capacity_ask ask = {0};
    struct sh_sim_cost c = {0};
    uint64_t *layers = NULL;
    struct sh_sim_result *r = xmalloc(sizeof *r);
    q.tp = (int)strtol(s->settings.tp.at[0], NULL, 10);
    int bad = (!s->args->capacity.uneven && sh_capacity_divides(&s->model, q.tp, e)) ||
              sh_capacity_ask_fill(&s->args->capacity, &s->settings, &q, &ask, &layers, e) ||
              (v->plan && sh_capacity_plan(v->plan, v->path, &s->model, q.tp, &ask.rule, &layers, e));
    if (!v->plan && !v->budget)
        ask.rule.state = ask.rule.headroom = 0;         /* they belong to a policy */
    bad = bad || sh_sim_cost(&ask, &s->efficiency, &c, e) || run_variant(s, v, &c, r, e);
    sh_sim_cost_clear(&c);
    free(layers);
    free(r);
    return bad ? -1 : 0;
}

/* Efficiencies of the whole cache's steps serve all. */
static int calibrate(struct sh_sim_study *s, struct sh_err *e)
{
    struct sh_capacity_question q = {&s->model, NULL, &s->board, s->settings.kv.at[0], NULL, 1};
    struct sh_capacity_ask ask = {0};
    struct sh_sim_cost c = {0};
    uint64_t *layers = NULL;
    struct sh_sim_point *p = xcalloc(SH_SIM_POINTS, sizeof *p);
    q.tp = (int)strtol(s->settings.tp.at[0], NULL, 10);
    int bad = sh_sim_points_read(s->args->calibrate, p, &s->n_point, e) ||
              sh_capacity_ask_fill(&s->args->capacity, &s->settings, &q, &ask, &layers, e) ||
              sh_sim_cost(&ask, &s->efficiency, &c, e) ||
              (sh_sim_fit(&c, p, s->n_point, &s->fit, e) && sh_err_prefix(e, "%s", s->args->calibrate));
    if (!bad)
        s->efficiency = s->fit.efficiency;
    sh_sim_cost_clear(&c);
    free(layers);
    free(p);
    return bad ? -1 : 0;
}

static int each_variant(struct sh_sim_study *s, struct sh_err *e)
{
    struct variant whole = {.name = "full"};
    if (simulate(s, &whole, e))
        return -1;
    for (int i = 0; i < s->settings.budget.n; i++) {
        struct variant v = {.name = s->settings.budget.at[i], .budget = s->settings.budget.at[i]};
        if (simulate(s, &v, e))
            return -1;
    }
    for (int i = 0; i < s->args->plan.n; i++) {
        struct variant v = {s->args->plan.at[i], NULL, s->args->plan.at[i], &s->plan[i]};
        if (simulate(s, &v, e))
            return -1;
    }
    return 0;
}

static int open_log(struct sh_sim_study *s, struct sh_err *e)
{
    const char *path = s->args->log;
    if (!path)
        return 0;
    if (!(s->log_file = sh_file_begin(path, e)))
        return -1;
    s->log = sh_file_stream(s->log_file);
    fputs("plan,speed,request,arrival_s,prompt_tokens,output_tokens,admitted_s,first_token_s,finished_s,"
          "preemptions\n", s->log);
    return 0;
}

static int close_log(struct sh_sim_study *s, int bad, struct sh_err *e)
{
    bad = sh_file_end(s->log_file, bad, e);
    s->log_file = NULL;
    s->log = NULL;
    return bad ? -1 : 0;
}

static int one_each(const struct sh_sim_study *s, struct sh_err *e)
{
    if (s->settings.kv.n > 1 || s->settings.tp.n > 1 || !strcmp(s->settings.tp.at[0], "auto"))
        return sh_misused(e, "simulate takes one --kv and one number for --tp; budgets and plans may be several");
    return 0;
}

static int read_plans(struct sh_sim_study *s, struct sh_err *e)
{
    s->plan = xcalloc((size_t)s->args->plan.n + 1, sizeof *s->plan);
    for (int i = 0; i < s->args->plan.n; i++)
        if (sh_plan_read(&s->plan[i], s->args->plan.at[i], e))
            return -1;
    return 0;
}

int sh_sim_study(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_study *out, struct sh_err *e)
{
    struct sh_sim_study *s = out;
    *s = (struct sh_sim_study){.args = a, .efficiency = {1, 1, 1, 1, 1, 0}};
    if (sh_sim_settings(a, &s->ask, e) || sh_capacity_settings(&a->capacity, &s->settings, e) || one_each(s, e) ||
        (a->efficiency && sh_sim_efficiency_parse(a->efficiency, &s->efficiency, e)) ||
        sh_sim_source(a, seed, &s->source, e) ||
        sh_capacity_names_open(&s->names, a->capacity.gpus, a->capacity.models, e) ||
        sh_capacity_model(&s->names, a->capacity.model, &s->model, e) ||
        sh_capacity_board(&s->names, a->capacity.gpu, &s->board, e) || read_plans(s, e))
        return -1;
    s->efficiency.overhead_s = a->overhead_s >= 0 ? a->overhead_s : 0;
    s->ask.stopped = sh_interrupted;
    if ((a->calibrate && calibrate(s, e)) || open_log(s, e))
        return -1;
    return close_log(s, each_variant(s, e), e);
}

void sh_sim_study_clear(struct sh_sim_study *s)
{
    for (int i = 0; i < s->n_row; i++) {
        free(s->row[i].plan);
        free(s->row[i].evidence);
    }
    for (int i = 0; s->plan && i < s->args->plan.n; i++)
        sh_plan_clear(&s->plan[i]);
    free(s->plan);
    free(s->row);
    sh_sim_source_close(&s->source);
    sh_kv_shape_clear(&s->model);
    sh_capacity_names_close(&s->names);
}
