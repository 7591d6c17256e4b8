/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/simulate/simulate_closed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/split_loop.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/read_number.h"

enum { MOST_CLIENTS = 100000 };

/* Prompts and answers on different GPUs. */
static int check_split(const struct sh_simulate_args *a, struct sh_err *e)
{
    int others = a->decode_workers || a->prefill_tp || a->prefill_ep || a->prefill_dp;
    if (!a->prefill_workers != !(a->transfer > 0))
        return sh_misused(e, "--prefill-workers N and --transfer BYTES_PER_S must be given together");
    if (!a->prefill_workers && others)
        return sh_misused(e, "%s requires --prefill-workers N", a->decode_workers ? "--decode-workers" :
                          a->prefill_tp ? "--prefill-tp" : a->prefill_ep ? "--prefill-ep" : "--prefill-dp");
    if (a->prefill_workers && (a->capacity.pp > 1 || a->replicas))
        return sh_misused(e, "--prefill-workers cannot be combined with %s", a->replicas ? "--replicas" : "--pp");
    return 0;
}

int sh_closed_options(const struct sh_simulate_args *a, struct sh_err *e)
{
    const struct { const char *option; int is_given; } others[] = {
        {"--rate", a->rate != NULL}, {"--speed", a->speed != NULL}, {"--max-rate", a->max_rate},
        {"--db", a->db != NULL}, {"--log", a->log != NULL}, {"--timeline", a->timeline}, {"--shard", a->shard != NULL},
        {"--plot-occupancy", a->plot_occupancy != NULL}, {"--efficiency", a->efficiency != NULL},
        {"--step-overhead", a->overhead_s >= 0}, {"--calibrate", a->calibrate != NULL},
        {"--quality-db", a->capacity.db != NULL}, {"--evict chunk", strcmp(a->evict, "prompt") != 0},
        {"--allocator slots", strcmp(a->memory, "paged") != 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].is_given)
            return sh_misused(e, "--concurrency cannot be combined with %s", others[i].option);
    if (!a->engine || (!a->workload && (!a->prompt || !a->output)))
        return sh_misused(e, "--concurrency requires --engine NAME|FILE, and --prompt N and --output N or --workload "
                          "FILE");
    if (!a->draft != !(a->accept >= 0))
        return sh_misused(e, "--speculate N and --accept F must be given together");
    return check_split(a, e);
}

static int read_server(struct sh_sim_study *s, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    if (sh_capacity_settings(&a->capacity, &s->settings, e))
        return -1;
    if (s->settings.tp.n > 1 || s->settings.kv.n > 1 || strchr(a->capacity.gpu, ',') || !strcmp(a->capacity.tp, "auto"))
        return sh_misused(e, "--concurrency requires one --gpu, one --tp and one --kv");
    s->board = xcalloc(1, sizeof *s->board);
    if (sh_capacity_names_open(&s->names, a->capacity.gpus, a->capacity.models, e) ||
        sh_capacity_model(&s->names, a->capacity.model, 0, &s->model, e) ||
        sh_capacity_board(&s->names, a->capacity.gpu, 0, s->board, e))
        return -1;
    s->n_board = 1;
    return 0;
}

static void fill(const struct sh_loop_result *r, int gpus, double price, struct sh_closed_row *to)
{
    static const double share[3] = {0.5, 0.9, 0.99};
    for (int i = 0; i < 3; i++) {
        to->ttft[i] = sh_quantile_at(&r->ttft, share[i]);
        to->tpot[i] = sh_quantile_at(&r->tpot, share[i]);
    }
    to->ttft[3] = sh_quantile_mean(&r->ttft);
    to->tpot[3] = sh_quantile_mean(&r->tpot);
    to->requests = (double)r->requests;
    to->seconds = r->seconds;
    to->steps = (double)r->steps;
    to->busy = r->busy_s / r->seconds;
    to->most_running = (double)r->most_running;
    to->tokens_in = (double)r->tokens_in;
    to->tokens_out = (double)r->tokens_out;
    to->pool = r->pool;
    to->output_rate = to->tokens_out / r->seconds;
    to->total_rate = (to->tokens_in + to->tokens_out) / r->seconds;
    to->per_gpu = to->output_rate / gpus;
    to->usd = price >= 0 ? price * gpus / 3600 / to->output_rate * 1e6 : (double)NAN;
    to->good_share = (double)r->good / to->requests;
    to->goodput = (double)r->good / r->seconds;
    sh_sim_prefix_fill(&r->prefix, r->tokens_reused, r->tokens_in, to->prefix);
}

/* A server with a cache: the whole one, that of a budget, or that of a plan (below 0: none). Clear it in any case. */
static int open_server(struct sh_sim_study *s, const struct sh_clock_layout *l, const char *budget, int plan,
                       const struct sh_engine *engine, struct sh_serving *v, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    struct sh_capacity_args server = a->capacity;
    struct sh_capacity_question q = {&s->model, NULL, s->board, s->settings.kv.at[0], budget, l->tp};
    server.sampled = a->max_seqs;
    if (sh_serving_open(&server, &s->settings, &q, engine, l, v, e))
        return -1;
    if (a->poll)
        v->poll = v->poll_busy = (uint32_t)a->poll;
    if (!budget && plan < 0)
        v->ask.rule.state = v->ask.rule.headroom = 0;
    if (plan < 0)
        return 0;
    const struct sh_plan *p = &s->plan[plan];
    if (sh_capacity_plan(p, a->plan.at[plan], &s->model, l->tp, &v->ask.rule, e))
        return -1;
    sh_capacity_add_state(&a->capacity, p, NULL, &s->model, s->longest, &v->ask.rule);
    return 0;
}

/* prefill: the server that reads prompts; NULL: the same one. */
static int run_clients(struct sh_sim_study *s, const struct sh_serving *v, const struct sh_serving *prefill,
                       int clients, struct sh_loop_result *r, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    struct sh_split_ask q = {.loop = sh_serving_loop(v, (uint32_t)clients, (uint64_t)a->requests),
                             .n_prefill = (uint32_t)a->prefill_workers, .transfer = a->transfer,
                             .n_decode = (uint32_t)(a->decode_workers ? a->decode_workers : 1)};
    if (a->workload && !a->requests)
        q.loop.requests = UINT64_MAX;   /* all that the file has */
    s->source.requests = (long long)q.loop.requests;
    if (!(q.loop.workload = sh_sim_source_again(&s->source, e)))
        return -1;
    q.loop.prefix = s->ask.prefix;
    q.loop.draft = (uint32_t)a->draft;
    q.loop.accept = fmax(a->accept, 0);
    q.loop.replicas = (uint32_t)a->replicas;
    q.loop.router = s->ask.router;
    q.loop.slo_ttft_s = a->slo_ttft;
    q.loop.slo_tpot_s = a->slo_tpot;
    q.loop.stopped = sh_interrupted;
    if (prefill) {
        q.prefill = &prefill->clock;
        q.prefill_ask = &prefill->ask;
    }
    if (prefill ? sh_split_loop(&q, r, e) : sh_closed_loop(&q.loop, r, e))
        return a->workload && !sh_interrupted() ? sh_err_prefix(e, "%s", a->workload) : -1;
    return 0;
}

/* All numbers of clients on one cache. */
static int run_cache(struct sh_sim_study *s, const char *budget, int plan, const int *clients, struct sh_closed *out,
                     struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    int splits = a->prefill_workers > 0, tp = (int)strtol(a->capacity.tp, NULL, 10);
    struct sh_clock_layout l = {tp, (int)a->capacity.ep, (int)a->dp, (int)a->capacity.pp};
    struct sh_clock_layout first = {a->prefill_tp ? (int)a->prefill_tp : tp, a->prefill_ep ? (int)a->prefill_ep : 1,
                                    a->prefill_dp ? (int)a->prefill_dp : 1, 1};
    struct sh_serving v = {.layers = NULL}, prefill = {.layers = NULL};
    int decoders = a->decode_workers ? (int)a->decode_workers : a->replicas ? (int)a->replicas : 1;
    out->gpus = l.tp * l.dp * l.pp * decoders + first.tp * first.dp * (int)a->prefill_workers;
    int bad = open_server(s, &l, budget, plan, &out->engine, &v, e) ||
              (splits && open_server(s, &first, budget, plan, &out->engine, &prefill, e)) ||
              (s->ask.prefix.block && sh_sim_prefix_suits(splits ? &prefill.ask : &v.ask, e));
    struct sh_loop_result *r = xmalloc(sizeof *r);
    for (int i = 0; i < out->clients && !bad; i++) {
        struct sh_closed_row *to = &out->row[out->n++];
        *to = (struct sh_closed_row){.cache = budget ? budget : plan < 0 ? "full" : a->plan.at[plan],
                                     .concurrency = clients[i]};
        bad = run_clients(s, &v, splits ? &prefill : NULL, clients[i], r, e);
        if (!bad)
            fill(r, out->gpus, a->capacity.price, to);
    }
    free(r);
    sh_serving_clear(&v);
    sh_serving_clear(&prefill);
    return bad;
}

static int read_plans(struct sh_sim_study *s, struct sh_err *e)
{
    s->plan = xcalloc((size_t)s->args->plan.n + 1, sizeof *s->plan);
    for (int i = 0; i < s->args->plan.n; i++)
        if (sh_plan_read(&s->plan[i], s->args->plan.at[i], e))
            return -1;
    enum { SOME = 1000 };               /* generated requests that tell how long the longest one is */
    s->source.requests = s->args->requests ? s->args->requests : SOME;
    return s->args->capacity.policy_state ? sh_sim_longest(s, e) : 0;
}

int sh_closed_run(struct sh_sim_study *s, struct sh_closed *out, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    int clients[SH_SIM_RATES], bad = 0, budgets;
    if (sh_closed_options(a, e) ||
        sh_read_ints("--concurrency", a->concurrency, clients, SH_SIM_RATES, &out->clients, e) ||
        sh_sim_source(a, (uint64_t)s->common->seed, &s->source, e) || sh_sim_prefix(a, &s->source, &s->ask.prefix, e) ||
        sh_sim_router(a, &s->ask.router, e))
        return -1;
    for (int i = 0; i < out->clients; i++)
        if (clients[i] < 1 || clients[i] > MOST_CLIENTS)
            return sh_misused(e, "--concurrency: found %d, expected 1 to %d clients", clients[i], MOST_CLIENTS);
    if (sh_engine_open(a->engine, &out->engine, e) || read_server(s, e) || read_plans(s, e))
        return -1;
    budgets = s->settings.budget.n;
    out->row = xcalloc((size_t)out->clients * (size_t)(budgets + a->plan.n + 1), sizeof *out->row);
    for (int i = -1; i < budgets + a->plan.n && !bad; i++)
        bad = run_cache(s, i >= 0 && i < budgets ? s->settings.budget.at[i] : NULL, i < budgets ? -1 : i - budgets,
                        clients, out, e);
    return bad;
}

void sh_closed_clear(struct sh_closed *c)
{
    free(c->row);
    c->row = NULL;
}
