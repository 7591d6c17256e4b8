/* SPDX-License-Identifier: Apache-2.0 */
/* The results of shears simulate (simulate_run.h). */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/app/simulate/simulate_run.h"
#include "src/base/time_unit.h"

/* A count, which a damaged store may lack. */
static void count(struct sh_out *o, const char *key, const char *label, double n)
{
    if (isnan(n))
        sh_out_real(o, key, label, n, 0);
    else
        sh_out_int(o, key, label, llround(n));
}

static void group(struct sh_out *o, const char *key, const double q[4])
{
    sh_out_group(o, key);
    sh_out_real(o, "p50", "p50", q[0], 4);
    sh_out_real(o, "p99", "p99", q[2], 4);
    sh_out_real(o, "p90", "p90", q[1], 4);
    sh_out_real(o, "mean", "mean", q[3], 4);
    sh_out_group_end(o);
}

/* Percentiles for people, in a suitable unit. All: every one, since --columns may name any. */
static void shown(struct sh_out *o, const char *key, const char *what, const double q[4], const struct sh_time_unit *u,
                  int all)
{
    static const struct { const char *key; int at, is_extra; } part[] = {
        {"p50", 0, 0}, {"p99", 2, 0}, {"p90", 1, 1}, {"mean", 3, 1}};
    sh_out_group(o, key);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        char *label = xasprintf("%s %s, %s", what, part[i].key, u->name);
        if (all || !part[i].is_extra)
            sh_out_real(o, part[i].key, label, q[part[i].at] * u->per_s, u->digits);
        free(label);
    }
    sh_out_group_end(o);
}

static void details(struct sh_out *o, const struct sh_sim_row *r)
{
    const double *m = r->at;
    count(o, "finished", "finished", m[SH_S_FINISHED]);
    count(o, "refused", "refused", m[SH_S_REFUSED]);
    sh_out_real(o, "speed", "speed", r->speed, 3);
    sh_out_real(o, "good_share", "good", m[SH_S_GOOD_SHARE], 4);
    group(o, "latency_s", m + SH_S_LATENCY);
    group(o, "queue_s", m + SH_S_QUEUE);
    sh_out_real(o, "kv_occupancy_peak", "peak", m[SH_S_OCCUPANCY_PEAK], 4);
    sh_out_int(o, "kv_pool_bytes_per_gpu", "pool", (long long)r->cache->pool);
    sh_out_real(o, "running_mean", "running", m[SH_S_RUNNING], 2);
    count(o, "largest_batch", "largest batch", m[SH_S_LARGEST_BATCH]);
    count(o, "steps", "steps", m[SH_S_STEPS]);
    sh_out_real(o, "seconds", "seconds", m[SH_S_SECONDS], 2);
    sh_out_real(o, "busy_share", "busy", m[SH_S_BUSY], 4);
    count(o, "tokens_in", "tokens in", m[SH_S_TOKENS_IN]);
    count(o, "tokens_out", "tokens out", m[SH_S_TOKENS_OUT]);
    count(o, "tokens_recomputed", "recomputed", m[SH_S_RECOMPUTED]);
    sh_out_real(o, "max_speed", "max. speed", m[SH_S_MAX_SPEED], 3);
    sh_out_text(o, "evidence", "evidence", r->cache->evidence);
}

static void timeline(struct sh_out *o, const struct sh_timeline *t)
{
    int n = sh_timeline_count(t);
    sh_out_list(o, "timeline", "cache in use over time");
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        sh_out_real(o, "from_s", "from s", i * t->width, 3);
        sh_out_real(o, "to_s", "to s", fmin((i + 1) * t->width, t->end), 3);
        sh_out_real(o, "kv_occupancy", "KV in use", sh_timeline_mean(t, i), 4);
    }
    sh_out_end(o);
}

/* Columns that tell the servers of the sweep apart, or all of them. */
static void server(struct sh_out *o, const struct sh_sim_study *s, const struct sh_sim_cache *v, int all)
{
    if (all || s->n_board > 1)
        sh_out_text(o, "gpu", "GPU", v->board->name);
    if (all || s->settings.tp.n > 1)
        sh_out_int(o, "tp", "tp", v->tp);
    if (all || s->settings.kv.n > 1)
        sh_out_text(o, "kv", "kv", v->kv);
}

/* The units of TTFT and TPOT, each over all rows. */
struct units {
    struct sh_time_unit ttft, tpot;
    int digits;                         /* of cache use, which is tiny for tiny models            */
};

static struct units units_of(const struct sh_sim_study *s)
{
    double *at = xcalloc(4 * (size_t)s->n_row + 1, sizeof *at);
    int n = 2 * s->n_row;
    for (int i = 0; i < n; i++) {
        at[i] = s->row[i / 2].at[SH_S_TTFT + (i % 2 ? 2 : 0)];
        at[n + i] = s->row[i / 2].at[SH_S_TPOT + (i % 2 ? 2 : 0)];
    }
    struct units u = {sh_time_unit(at, n), sh_time_unit(at + n, n), 4};
    for (int i = 0; i < s->n_row; i++)
        u.digits = s->row[i].at[SH_S_OCCUPANCY] < 1e-3 ? 7 : u.digits;
    free(at);
    return u;
}

static void row(struct sh_out *o, const struct sh_sim_study *s, const struct sh_sim_row *r, const struct units *u,
                int is_text, int all)
{
    int has_limits = s->args->slo_ttft >= 0 || s->args->slo_tpot >= 0;
    const double *m = r->at;
    sh_out_item(o);
    sh_out_text(o, "plan", "cache", r->cache->name);
    server(o, s, r->cache, all);
    sh_out_real(o, "rate_requests_per_s", "requests/s", m[SH_S_RATE], 3);
    count(o, "requests", "requests", m[SH_S_REQUESTS]);
    sh_out_real(o, "throughput_tokens_per_s", "tokens/s", m[SH_S_THROUGHPUT], 1);
    if (has_limits || all)
        sh_out_real(o, "goodput_requests_per_s", "good/s", m[SH_S_GOODPUT], 3);
    if (is_text) {
        shown(o, "ttft_s", "TTFT", m + SH_S_TTFT, &u->ttft, all);
        shown(o, "tpot_s", "TPOT", m + SH_S_TPOT, &u->tpot, all);
    } else {
        group(o, "ttft_s", m + SH_S_TTFT);
        group(o, "tpot_s", m + SH_S_TPOT);
    }
    count(o, "preemptions", "preemptions", m[SH_S_PREEMPTIONS]);
    sh_out_real(o, "kv_occupancy_mean", "KV in use", m[SH_S_OCCUPANCY], u->digits);
    if (!all)
        count(o, "largest_batch", "largest batch", m[SH_S_LARGEST_BATCH]);
    if (s->args->max_rate || all)
        sh_out_real(o, "max_rate_requests_per_s", "max. rate",
                    is_text && m[SH_S_MAX_IS_OPEN] > 0 ? (double)INFINITY : m[SH_S_MAX_RATE], 3);
    if (all)
        details(o, r);
}

/* The known quality of each cache, which is the same on all servers. */
static void note_evidence(struct sh_out *o, const struct sh_sim_study *s)
{
    int n = 1 + s->settings.budget.n + s->args->plan.n;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < s->n_row; i++)
            if (s->row[i].is_there && (int)(s->row[i].cache - s->cache) % n == k) {
                sh_out_note(o, "%s: %s", s->row[i].cache->name, s->row[i].cache->evidence);
                break;
            }
}

/* What happened to a cache, at the first of its rows. */
static void note_cache(struct sh_out *o, const struct sh_sim_row *r)
{
    const struct sh_sim_cache *v = r->cache;
    if (r->at[SH_S_REFUSED] > 0)
        sh_out_note(o, "%s%s: %.0f requests were refused: their cache does not fit even alone.", v->name, v->on,
                    r->at[SH_S_REFUSED]);
    if (r->at[SH_S_MAX_IS_OPEN] > 0)
        sh_out_note(o, "%s%s: the limits hold at any rate of these requests; use more --requests.", v->name,
                    v->on);
}

static void note_pool(struct sh_out *o, const struct sh_sim_study *s)
{
    uint64_t last = 0;
    for (int i = 0; i < s->n_cache; i++) {
        const struct sh_sim_cache *v = &s->cache[i];
        if (v->pool != last)
            sh_out_note(o, "%s%sThe cache has %.2f GiB per GPU: what weights leave of --util, --reserve and "
                        "--overhead.", *v->on ? v->on + 2 : "", *v->on ? ": " : "", (double)v->pool / 0x1p30);
        last = v->pool;
    }
}

static void notes(struct sh_out *o, const struct sh_sim_study *s)
{
    const struct sh_sim_efficiency *f = &s->efficiency;
    const struct sh_sim_cache *last = NULL;
    int known = 0, first = 1;
    note_pool(o, s);
    if (s->n_point)
        sh_out_note(o, "Calibrated on %d steps: memory %.3f, compute %.3f of the GPU's peak, %.3f ms per step; error "
                    "%.1f %% (root mean square), %.1f %% at most.", s->n_point, f->weights, f->products,
                    1e3 * f->overhead_s, 100 * s->fit.rms, 100 * s->fit.worst);
    if (s->fit.is_bound)
        sh_out_note(o, "A measured step is faster than the GPU's peak allows: check model, formats and --tp.");
    if (f->weights == 1 && f->products == 1 && f->overhead_s <= 0)
        sh_out_note(o, "Steps take the least time that bandwidth and compute allow; real steps take longer "
                    "(--efficiency, --step-overhead, or --calibrate FILE).");
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *r = &s->row[i];
        known += r->is_known;
        if (!r->is_there)
            continue;
        if (first && r->at[SH_S_SKIPPED] > 0)
            sh_out_note(o, "%.0f rows without prompt or output tokens were skipped.", r->at[SH_S_SKIPPED]);
        first = 0;
        if (r->cache != last)
            note_cache(o, r);
        last = r->cache;
    }
    note_evidence(o, s);
    if (known)
        sh_out_note(o, "%d of %d rows were read from the store; --force recomputes them.", known, s->n_row);
}

void sh_sim_show(struct sh_out *o, const struct sh_sim_study *s, int is_text, int all)
{
    struct units u = units_of(s);
    sh_out_list(o, "results", "continuous batching");
    for (int i = 0; i < s->n_row; i++) {
        if (!s->row[i].is_there)                /* computed by another shard */
            continue;
        row(o, s, &s->row[i], &u, is_text, all);
        if (s->args->timeline && !is_text)
            timeline(o, s->row[i].occupancy);
    }
    if (s->args->timeline && !is_text)
        sh_out_show(o, "timeline");
    sh_out_end(o);
    notes(o, s);
}
