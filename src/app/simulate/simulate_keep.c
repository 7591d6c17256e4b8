/* SPDX-License-Identifier: Apache-2.0 */
/* What shears simulate --db keeps (simulate_run.h): one set of figures for each cell, under settings that name
 * everything that decides them; what stands behind a name, a file or a row of a catalogue, by a hash. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/app/store/metrics.h"
#include "src/app/simulate/simulate_run.h"

#define FOUR(name, what) \
    {name ".p50", what " p50", 4}, {name ".p90", what " p90", 4}, {name ".p99", what " p99", 4}, {name ".mean", what, 4}

/* In the order of enum sh_sim_metric. */
static const struct sh_metric metric[] = {
    {"rate_requests_per_s", "requests/s", 3}, {"requests", "requests", 0}, {"finished", "finished", 0},
    {"refused", "refused", 0}, {"skipped", "left out", 0}, {"throughput_tokens_per_s", "tokens/s", 1},
    {"goodput_requests_per_s", "good/s", 3}, {"good_share", "good", 4}, FOUR("ttft_s", "TTFT"), FOUR("tpot_s", "TPOT"),
    FOUR("latency_s", "latency"), FOUR("queue_s", "queue"), {"preemptions", "preemptions", 0},
    {"kv_occupancy_mean", "KV in use", 4}, {"kv_occupancy_peak", "peak", 4}, {"running_mean", "running", 2},
    {"largest_batch", "largest batch", 0}, {"steps", "steps", 0}, {"seconds", "seconds", 2}, {"busy_share", "busy", 4},
    {"tokens_in", "tokens in", 0}, {"tokens_out", "tokens out", 0}, {"tokens_recomputed", "recomputed", 0},
    {"max_rate_requests_per_s", "max. rate", 3}, {"max_speed", "max. speed", 3}, {"max_is_open", "no limit", 0}};
#undef FOUR
_Static_assert(sizeof metric / sizeof *metric == SH_N_SIM_METRIC, "a name for each figure");

static const struct sh_metrics metrics = {"simulate", metric, SH_N_SIM_METRIC};

/* ---- names ---- */

static void mix(uint64_t *h, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);             /* the last digits may be another machine's */
    sh_part_hash(h, text);
}

/* What it says of sequences of many lengths, up to the longest that there may be. */
uint64_t sh_sim_costs(const struct sh_sim_cost *c)
{
    const struct sh_roofline *r = &c->line;
    const double line[] = {r->plain_bytes, r->head_bytes, r->expert_bytes, r->expert_share, r->token_flops,
                           r->head_flops, r->link_bytes, r->bandwidth, r->peak, r->link, r->ranks, (double)c->pool,
                           c->efficiency.cache, c->efficiency.attention, c->efficiency.overhead_s};
    uint64_t h = SH_PART_HASH;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        mix(&h, line[i]);
    for (uint64_t n = 1; n <= SH_REQUEST_TOKENS; n += n < 4 ? 1 : n / 4) {
        struct sh_sim_size z = sh_sim_size_at(c, n);
        const double size[] = {(double)z.kept, (double)z.whole, z.kept_read, z.whole_read, z.kept_flops, z.whole_flops,
                               z.prompt_flops};
        for (size_t i = 0; i < sizeof size / sizeof *size; i++)
            mix(&h, size[i]);
    }
    return h;
}

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

static void put_hash(json_t *to, const char *key, uint64_t h)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, h);
    put(to, key, text);
}

/* Everything that decides the figures; `requests`: hash of the workload's file. For free(). NULL: a name is not
 * UTF-8. */
static char *settings_of(const struct sh_sim_study *s, const struct sh_sim_row *r, uint64_t requests)
{
    const struct sh_simulate_args *a = s->args;
    const struct sh_capacity_args *c = &a->capacity;
    const struct sh_sim_cache *v = r->cache;
    const struct { const char *key; long long value; } number[] = {
        {"page", c->page}, {"step_tokens", s->ask.step_tokens}, {"max_seqs", s->ask.max_running},
        {"headroom", c->headroom}, {"state", c->state}, {"seed", s->common->seed}, {"tp", v->tp}};
    json_t *o = json_object();
    put(o, "model", c->model);
    put(o, "gpu", v->board->name);
    put(o, "plan", v->name);
    put(o, "evidence", v->evidence);
    put_hash(o, "costs", v->costs);
    put(o, "workload", a->workload);
    put(o, "prompt", a->prompt);
    put(o, "output", a->output);
    put(o, "kv", v->kv);
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
    json_object_set_new(o, "max_rate", json_boolean(a->max_rate));
    if (a->workload)
        put_hash(o, "requests_hash", requests);
    else
        json_object_set_new(o, "requests", json_integer(s->source.requests));
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        json_object_set_new(o, number[i].key, json_integer(number[i].value));
    char *text = json_dumps(o, JSON_SORT_KEYS);
    json_decref(o);
    return text;
}

int sh_sim_names(struct sh_sim_study *s, struct sh_err *e)
{
    uint64_t requests = 0;
    if (s->args->workload && sh_workload_hash(&s->source.file, &requests, e))
        return -1;
    for (int i = 0; i < s->n_row; i++)
        if (!(s->row[i].settings = settings_of(s, &s->row[i], requests)))
            return sh_fail(e, "--db: a name in these options is not valid UTF-8, which the store requires");
    return 0;
}

/* ---- the store ---- */

int sh_sim_find(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    struct sh_metric_row *row = xcalloc((size_t)s->n_row, sizeof *row);
    for (int i = 0; i < s->n_row; i++)
        row[i] = (struct sh_metric_row){s->row[i].settings, s->row[i].at, &s->row[i].is_known};
    int bad = sh_metrics_find(&metrics, row, s->n_row, store, e);
    for (int i = 0; i < s->n_row && !bad; i++)
        s->row[i].is_there = s->row[i].is_known;
    free(row);
    return bad;
}

int sh_sim_keep(const struct sh_sim_study *s, int first, int n, struct sh_store *store, struct sh_err *e)
{
    int bad = sh_store_group_begin(store, e);
    if (bad)
        return -1;
    for (int i = first; i < first + n && !bad; i++)
        if (s->row[i].is_there && !s->row[i].is_known)
            bad = sh_metrics_keep(&metrics, s->row[i].settings, s->row[i].at, store, e);
    return sh_store_group_end(store, bad, e);
}

int sh_sim_forget(const struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    const char **settings = xcalloc((size_t)s->n_row + 1, sizeof *settings);
    for (int i = 0; i < s->n_row; i++)
        settings[i] = s->row[i].is_known ? NULL : s->row[i].settings;
    int bad = sh_results_forget(metrics.command, settings, s->n_row, store, e);
    free(settings);
    return bad;
}
