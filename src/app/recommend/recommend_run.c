/* SPDX-License-Identifier: Apache-2.0 */
/* One replica under its part of the load. */
#include <math.h>
#include <stdlib.h>

#include "src/app/recommend/recommend.h"
#include "src/base/mem.h"
#include "src/base/progress.h"

/* What sequences cost depends on the cut and the cache alone, so boards share the tables. */
struct sh_recommend_sizes {
    struct sh_recommend_sizes *next;
    int tp, cache, is_open;
    struct sh_serving v;                /* whose budget the tables point at                       */
    struct sh_sim_cost cost;
};

/* The requests and what became of them. */
struct record {
    struct sh_workload base;            /* passes on those of `from`, until too many were late     */
    struct sh_workload_random from;
    double *ttft, *tpot;                /* of those that are over                                  */
    uint64_t n, good, most_late;
    double request_s, token_s, slo_ttft, slo_tpot;
};

static int next(struct sh_workload *base, struct sh_request *out, struct sh_err *e)
{
    struct record *r = (struct record *)base;
    return r->n - r->good > r->most_late ? 0 : r->from.base.next(&r->from.base, out, e);
}

static void done(void *to, const struct sh_sim_done *d)
{
    struct record *r = to;
    double outside = r->request_s + r->token_s * d->request.prompt;
    double ttft = d->is_refused ? (double)INFINITY : d->first_s - d->request.arrival_s + outside;
    double tpot = d->is_refused ? (double)INFINITY
                  : d->request.output > 1 ? (d->finished_s - d->first_s) / (d->request.output - 1) : 0;
    r->ttft[r->n] = ttft;
    r->tpot[r->n++] = tpot;
    r->good += ttft <= r->slo_ttft && tpot <= r->slo_tpot;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* p50, p99, mean, and the value that `goal` of all do not exceed. */
static void summary(double *at, uint64_t n, double goal, double to[4])
{
    const double share[4] = {0.5, 0.99, 0, goal};
    double sum = 0;
    qsort(at, n, sizeof *at, compare);
    for (uint64_t i = 0; i < n; i++)
        sum += at[i];
    for (int i = 0; i < 4; i++) {
        uint64_t k = (uint64_t)ceil(share[i] * (double)n - 1e-9);
        to[i] = i == 2 ? sum / (double)n : at[k ? k - 1 : 0];
    }
}

static struct sh_recommend_sizes *sizes(struct sh_recommend *r, const struct sh_candidate *c, struct sh_err *e)
{
    static const struct sh_sim_efficiency plain = {1, 1, 1, 1, 1, 0};
    int tp = r->layouts.at[c->layout].tp;
    for (struct sh_recommend_sizes *s = r->sizes; s; s = s->next)
        if (s->tp == tp && s->cache == c->cache)
            return s;
    struct sh_recommend_sizes *s = xcalloc(1, sizeof *s);
    s->tp = tp;
    s->cache = c->cache;
    s->next = r->sizes;
    r->sizes = s;
    if (sh_recommend_server(r, c, &s->v, e))
        return NULL;
    s->is_open = 1;
    struct sh_capacity_ask ask = s->v.ask;
    ask.memory = (uint64_t)1 << 60;     /* the room is the clock's, which knows of all GPUs        */
    ask.overhead = 0;
    return sh_sim_cost(&ask, &plain, &s->cost, e) ? NULL : s;
}

void sh_recommend_sizes_clear(struct sh_recommend *r)
{
    for (struct sh_recommend_sizes *s = r->sizes, *next; s; s = next) {
        next = s->next;
        sh_sim_cost_clear(&s->cost);
        if (s->is_open)
            sh_serving_clear(&s->v);
        free(s);
    }
    r->sizes = NULL;
}

int sh_recommend_judge(struct sh_recommend *r, const struct sh_candidate *c, int replicas, int whole,
                       struct sh_judged *out, struct sh_err *e)
{
    struct sh_recommend_sizes *s = sizes(r, c, e);
    struct sh_serving v;
    if (!s || sh_recommend_server(r, c, &v, e))
        return -1;
    uint64_t n = (uint64_t)r->args->requests;
    const double *k = v.clock.constant, goal = r->load.goal;
    struct record to = {.base = {next}, .from = {.prompt = r->prompt, .output = r->output},
                        .ttft = xcalloc(n, sizeof *to.ttft), .tpot = xcalloc(n, sizeof *to.tpot),
                        .most_late = whole ? n : (uint64_t)((1 - goal) * (double)n + 1e-9),
                        .request_s = k[SH_CLOCK_request], .token_s = k[SH_CLOCK_token],
                        .slo_ttft = r->load.slo_ttft, .slo_tpot = r->load.slo_tpot};
    uint32_t ranks = (uint32_t)v.clock.layout.dp;
    struct sh_sim_ask ask = {.step_tokens = v.chunk * ranks, .max_running = v.sequences * ranks,
                             .memory = SH_SIM_PAGED, .evict = SH_EVICT_PROMPT, .slo_ttft_s = INFINITY,
                             .slo_tpot_s = INFINITY, .speed = 1, .done = done, .to = &to, .stopped = sh_interrupted};
    struct sh_sim_result *result = xmalloc(sizeof *result);
    sh_workload_random(&to.from, r->load.rate / replicas, n, (uint64_t)r->args->seed);
    int bad = sh_sim_cost_clock(&s->cost, &v.clock, v.memory, e) || sh_simulate(&ask, &s->cost, &to.base, result, e);
    if (!bad) {
        double span = result->end_s - result->start_s;
        *out = (struct sh_judged){.good = (double)to.good / (double)to.n, .running = result->running_mean,
                                  .busy = span > 0 ? result->busy_s / span : 0,
                                  .occupancy = result->occupancy_mean};
        summary(to.ttft, to.n, goal, out->ttft);
        summary(to.tpot, to.n, goal, out->tpot);
    }
    free(result);
    free(to.ttft);
    free(to.tpot);
    sh_serving_clear(&v);
    r->simulations++;
    return bad ? -1 : to.n == n && out->good >= goal - 1e-12;
}
