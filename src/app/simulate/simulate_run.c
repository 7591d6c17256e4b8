/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_run.h: servers, and what runs on them. */
#include "src/app/simulate/simulate_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/simulate.h"
#include "src/base/mem.h"
#include "src/base/progress.h"

enum { SEARCH_RUNS = 16 };              /* of --max-rate, about */

struct logged {
    FILE *to;
    const struct sh_sim_row *row;
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
    const struct sh_sim_cache *v = l->row->cache;
    quoted(l->to, v->name);
    fputc(',', l->to);
    quoted(l->to, v->board->name);
    fprintf(l->to, ",%d,", v->tp);
    quoted(l->to, v->kv);
    fprintf(l->to, ",%.9g,%llu", l->row->speed, (unsigned long long)d->number);
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

void sh_sim_prefix_fill(const struct sh_prefix_count *c, uint64_t reused, uint64_t tokens, double to[SH_N_SIM_PREFIX])
{
    to[SH_SP_SHARE] = tokens ? (double)reused / (double)tokens : 0;
    to[SH_SP_TOKENS] = (double)reused;
    to[SH_SP_ASKED] = (double)c->asked;
    to[SH_SP_HIT] = (double)(c->hit[SH_TIER_GPU] + c->hit[SH_TIER_HOST] + c->hit[SH_TIER_DISK]);
    to[SH_SP_HIT_HOST] = (double)c->hit[SH_TIER_HOST];
    to[SH_SP_HIT_DISK] = (double)c->hit[SH_TIER_DISK];
    to[SH_SP_ROOM] = (double)c->room;
}

/* skipped: rows of the workload's file; most: the highest rate (find_most). */
static void fill(const struct sh_sim_result *r, double skipped, const double most[3], struct sh_sim_row *row)
{
    double span = r->last_arrival_s - r->start_s, whole = r->end_s - r->start_s;
    double at[SH_N_SIM_METRIC] = {
        [SH_S_RATE] = span > 0 ? (double)(r->requests - 1) / span : (double)NAN,
        [SH_S_REQUESTS] = (double)r->requests, [SH_S_FINISHED] = (double)r->finished,
        [SH_S_REFUSED] = (double)r->refused, [SH_S_SKIPPED] = skipped, [SH_S_PREEMPTIONS] = (double)r->preemptions,
        [SH_S_STEPS] = (double)r->steps, [SH_S_LARGEST_BATCH] = (double)r->largest_batch,
        [SH_S_TOKENS_IN] = (double)r->tokens_in, [SH_S_TOKENS_OUT] = (double)r->tokens_out,
        [SH_S_RECOMPUTED] = (double)r->tokens_recomputed, [SH_S_THROUGHPUT] = r->throughput,
        [SH_S_GOODPUT] = r->goodput, [SH_S_GOOD_SHARE] = (double)r->good / (double)r->requests,
        [SH_S_SECONDS] = whole, [SH_S_BUSY] = whole > 0 ? r->busy_s / whole : 0, [SH_S_RUNNING] = r->running_mean,
        [SH_S_OCCUPANCY] = r->occupancy_mean, [SH_S_OCCUPANCY_PEAK] = r->occupancy_peak};
    summary(&r->ttft, at + SH_S_TTFT);
    summary(&r->tpot, at + SH_S_TPOT);
    summary(&r->latency, at + SH_S_LATENCY);
    summary(&r->queue, at + SH_S_QUEUE);
    memcpy(&at[SH_S_MAX_RATE], most, 3 * sizeof *most);
    memcpy(row->at, at, sizeof at);
}

/* The clock of the engine; its attention is not copied, and there is one stage. */
static int set_clock(const struct sh_sim_study *s, const struct sh_capacity_question *q, struct sh_sim_server *to,
                     struct sh_err *e)
{
    struct sh_clock_layout l = {q->tp, (int)s->args->capacity.ep, 1, 1};
    struct sh_serving v;
    if (sh_serving_open(&s->args->capacity, &s->settings, q, &s->engine, &l, &v, e))
        return -1;
    to->clock = v.clock;
    sh_serving_clear(&v);
    return sh_sim_cost_clock(&to->cost, &to->clock, v.memory, e);
}

int sh_sim_server_open(const struct sh_sim_study *s, const struct sh_sim_cache *v, struct sh_sim_server *to,
                       struct sh_err *e)
{
    struct sh_capacity_question q = {&s->model, NULL, v->board, v->kv, v->budget, v->tp};
    struct sh_capacity_ask ask = {0};
    *to = (struct sh_sim_server){0};
    int bad = (!s->args->capacity.uneven && sh_capacity_divides(&s->model, q.tp, e)) ||
              sh_capacity_ask_fill(&s->args->capacity, &s->settings, &q, &ask, &to->layers, e) ||
              (v->plan && sh_capacity_plan(v->plan, v->path, &s->model, q.tp, &ask.rule, e));
    if (!v->plan && !v->budget)
        ask.rule.state = ask.rule.headroom = 0;         /* these belong to a policy */
    if (!bad)
        sh_capacity_add_state(&s->args->capacity, v->plan, v->measured, &s->model, s->longest, &ask.rule);
    ask.ep = 1;                         /* an engine's is its clock's                             */
    bad = bad || (s->ask.prefix.block && sh_sim_prefix_suits(&ask, e));
    if (bad || sh_sim_cost(&ask, &s->efficiency, &to->cost, e) || (s->has_engine && set_clock(s, &q, to, e))) {
        sh_sim_cost_clear(&to->cost);
        free(to->layers);
        to->layers = NULL;
        return s->n_board > 1 ? sh_err_prefix(e, "%s", v->board->name) : -1;
    }
    to->cache = v;
    return 0;
}

void sh_sim_server_close(struct sh_sim_server *server)
{
    sh_sim_cost_clear(&server->cost);
    free(server->layers);
    *server = (struct sh_sim_server){0};
}

void sh_sim_moved(void *to, double share)
{
    struct sh_sim_study *s = to;
    int tried = s->tried < SEARCH_RUNS ? s->tried : SEARCH_RUNS - 1;
    sh_progress_at(&s->progress, 100 * (s->runs + tried + share) / s->all_runs, "");
}

static struct sh_workload *again(void *from, struct sh_err *e)
{
    struct sh_sim_study *s = from;
    s->tried++;
    return sh_sim_source_again(&s->source, e);
}

double sh_sim_runs(const struct sh_sim_study *s, int first, int n)
{
    int fresh = 0;
    for (int i = first; i < first + n; i++)
        fresh += !s->row[i].is_known;
    return fresh == n && s->args->max_rate ? n + SEARCH_RUNS : fresh;
}

/* The highest rate, its speed, and whether there is no limit: the same for all rows of a cache, so searched once, or
 * taken from a row that is known. */
static int find_most(struct sh_sim_study *s, const struct sh_sim_row *row, int n, double most[3], struct sh_err *e)
{
    struct sh_rate rate = {0};
    for (int i = 0; i < n; i++)
        if (row[i].is_known) {
            memcpy(most, &row[i].at[SH_S_MAX_RATE], 3 * sizeof *most);
            return 0;
        }
    most[0] = most[1] = (double)NAN;
    most[2] = 0;
    if (!s->args->max_rate)
        return 0;
    s->tried = -1;
    if (sh_sim_rate(&s->ask, &s->server.cost, again, s, s->args->goal, s->result, &rate, e))
        return -1;
    s->tried = 0;
    s->runs += SEARCH_RUNS;
    most[2] = rate.is_open;
    if (!rate.is_open) {
        most[0] = rate.requests_per_s;
        most[1] = rate.speed;
    }
    return 0;
}

static int run_row(struct sh_sim_study *s, struct sh_sim_row *row, const double most[3], struct sh_err *e)
{
    struct logged log = {s->log, row};
    struct sh_sim_ask ask = s->ask;
    struct sh_workload *w = sh_sim_source_again(&s->source, e);
    ask.speed = row->speed;
    ask.done = s->log ? log_request : NULL;
    ask.to = &log;
    if (!w)
        return -1;
    if (sh_simulate(&ask, &s->server.cost, w, s->result, e))
        return s->args->workload && !sh_interrupted() ? sh_err_prefix(e, "%s", s->args->workload) : -1;
    fill(s->result, (double)s->source.file.skipped, most, row);
    sh_sim_prefix_fill(&s->result->prefix, s->result->tokens_reused,
                       s->result->tokens_in + s->result->tokens_recomputed, row->prefix);
    if (row->occupancy)
        *row->occupancy = s->result->occupancy;
    row->is_there = 1;
    s->runs++;
    sh_sim_moved(s, 0);
    return 0;
}

int sh_sim_run(struct sh_sim_study *s, int first, int n, struct sh_err *e)
{
    double most[3];
    if (s->server.cache != s->row[first].cache) {
        sh_sim_server_close(&s->server);
        if (sh_sim_server_open(s, s->row[first].cache, &s->server, e))
            return -1;
    }
    if (find_most(s, &s->row[first], n, most, e))
        return -1;
    for (int i = first; i < first + n; i++)
        if (!s->row[i].is_known && run_row(s, &s->row[i], most, e))
            return -1;
    return 0;
}
