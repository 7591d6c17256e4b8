/* SPDX-License-Identifier: Apache-2.0 */
/* What shears simulate --db keeps (simulate_run.h): one set of figures for each cache and rate, under settings that
 * name everything that decides them. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/cli/metrics.h"
#include "src/cli/simulate_run.h"

static const struct sh_metric metric[] = {
    {"rate_requests_per_s", "requests/s", 3}, {"requests", "requests", 0},
    {"throughput_tokens_per_s", "tokens/s", 1}, {"goodput_requests_per_s", "good/s", 3},
    {"ttft_s.p50", "TTFT p50", 4}, {"ttft_s.p99", "TTFT p99", 4}, {"tpot_s.p50", "TPOT p50", 5},
    {"tpot_s.p99", "TPOT p99", 5}, {"preemptions", "preemptions", 0}, {"kv_occupancy_mean", "KV in use", 4},
    {"max_rate_requests_per_s", "max. rate", 3}};

enum { N_METRIC = sizeof metric / sizeof *metric };

static const struct sh_metrics metrics = {"simulate", metric, N_METRIC};

static void put(json_t *to, const char *key, const char *text)
{
    if (text)
        json_object_set_new(to, key, json_string(text));
}

static void put_real(json_t *to, const char *key, double value)
{
    if (value >= 0)
        json_object_set_new(to, key, json_real(value));
}

/* For free(). NULL: a name is not UTF-8. */
static char *settings_of(const struct sh_sim_study *s, const struct sh_sim_row *r, uint64_t seed)
{
    const struct sh_simulate_args *a = s->args;
    const struct sh_capacity_args *c = &a->capacity;
    const struct { const char *key; long long value; } number[] = {
        {"page", c->page}, {"step_tokens", s->ask.step_tokens}, {"max_seqs", s->ask.max_running},
        {"headroom", c->headroom}, {"state", c->state}, {"seed", (long long)seed}};
    json_t *o = json_object();
    put(o, "model", c->model);
    put(o, "gpu", c->gpu);
    put(o, "plan", r->plan);
    put(o, "evidence", r->evidence);
    put(o, "workload", a->workload);
    put(o, "prompt", a->prompt);
    put(o, "output", a->output);
    put(o, "tp", c->tp);
    put(o, "kv", c->kv);
    put(o, "weights", c->weights);
    put(o, "windows", c->windows);
    put(o, "evict", a->evict);
    put(o, "allocator", a->memory);
    put(o, "efficiency", a->efficiency);
    put(o, "calibrate", a->calibrate);
    put(o, "gpus", c->gpus);
    put(o, "models", c->models);
    put_real(o, "speed", r->speed * (a->workload ? 1 : s->source.rate));
    put_real(o, "slo_ttft_s", a->slo_ttft);
    put_real(o, "slo_tpot_s", a->slo_tpot);
    put_real(o, "goal", a->goal);
    put_real(o, "step_overhead_s", a->overhead_s);
    put_real(o, "util", c->util);
    put_real(o, "reserve", c->reserve);
    put_real(o, "memory_bytes", (double)c->memory);
    put_real(o, "overhead_bytes", (double)c->overhead);
    put_real(o, "bandwidth", c->bandwidth);
    put_real(o, "flops", c->flops);
    json_object_set_new(o, "link", json_boolean(c->link));
    if (!a->workload)
        json_object_set_new(o, "requests", json_integer(s->source.requests));
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        json_object_set_new(o, number[i].key, json_integer(number[i].value));
    char *text = json_dumps(o, JSON_SORT_KEYS);
    json_decref(o);
    return text;
}

int sh_sim_keep(const struct sh_sim_study *s, struct sh_store *store, uint64_t seed, struct sh_err *e)
{
    int bad = 0;
    for (int i = 0; i < s->n_row && !bad; i++) {
        const struct sh_sim_row *r = &s->row[i];
        const double at[N_METRIC] = {
            r->rate, (double)r->requests, r->throughput, r->goodput, r->ttft[0], r->ttft[2], r->tpot[0], r->tpot[2],
            (double)r->preemptions, r->occupancy_mean, r->has_max && !r->max_is_open ? r->max_rate : (double)NAN};
        char *settings = settings_of(s, r, seed);
        bad = !settings ? sh_fail(e, "--db: a name in these options is not UTF-8, which the store keeps settings in")
                        : sh_metrics_keep(&metrics, settings, at, store, e);
        free(settings);
    }
    return bad ? -1 : 0;
}
