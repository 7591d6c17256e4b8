/* SPDX-License-Identifier: Apache-2.0 */
/* The results of shears simulate (simulate_run.h). */
#include <math.h>

#include "src/cli/simulate_run.h"

static void group(struct sh_out *o, const char *key, const char *p50, const char *p99, const double q[4], int is_text,
                  int digits)
{
    sh_out_group(o, key);
    sh_out_real(o, "p50", p50, q[0], digits);
    sh_out_real(o, "p99", p99, q[2], digits);
    if (!is_text) {
        sh_out_real(o, "p90", "p90", q[1], digits);
        sh_out_real(o, "mean", "mean", q[3], digits);
    }
    sh_out_group_end(o);
}

static void details(struct sh_out *o, const struct sh_sim_row *r)
{
    sh_out_int(o, "finished", "finished", (long long)r->finished);
    sh_out_int(o, "refused", "refused", (long long)r->refused);
    sh_out_real(o, "speed", "speed", r->speed, 3);
    sh_out_real(o, "good_share", "good", r->good_share, 4);
    group(o, "latency_s", "latency p50", "p99", r->latency, 0, 3);
    group(o, "queue_s", "queue p50", "p99", r->queue, 0, 3);
    sh_out_real(o, "kv_occupancy_peak", "peak", r->occupancy_peak, 4);
    sh_out_int(o, "kv_pool_bytes_per_gpu", "pool", (long long)r->pool);
    sh_out_real(o, "running_mean", "running", r->running_mean, 2);
    sh_out_int(o, "largest_batch", "largest batch", (long long)r->largest_batch);
    sh_out_int(o, "steps", "steps", (long long)r->steps);
    sh_out_real(o, "seconds", "seconds", r->seconds, 2);
    sh_out_real(o, "busy_share", "busy", r->busy_share, 4);
    sh_out_int(o, "tokens_in", "tokens in", (long long)r->tokens_in);
    sh_out_int(o, "tokens_out", "tokens out", (long long)r->tokens_out);
    sh_out_int(o, "tokens_recomputed", "recomputed", (long long)r->recomputed);
    sh_out_real(o, "max_speed", "max. speed", r->has_max && !r->max_is_open ? r->max_speed : (double)NAN, 3);
    sh_out_text(o, "evidence", "evidence", r->evidence);
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

static void row(struct sh_out *o, const struct sh_sim_row *r, int has_limits, int is_text)
{
    sh_out_item(o);
    sh_out_text(o, "plan", "plan", r->plan);
    sh_out_real(o, "rate_requests_per_s", "requests/s", r->rate, 3);
    sh_out_int(o, "requests", "requests", (long long)r->requests);
    sh_out_real(o, "throughput_tokens_per_s", "tokens/s", r->throughput, 1);
    if (has_limits || !is_text)
        sh_out_real(o, "goodput_requests_per_s", "good/s", r->goodput, 3);
    group(o, "ttft_s", "TTFT p50", "TTFT p99", r->ttft, is_text, 4);
    group(o, "tpot_s", "TPOT p50", "TPOT p99", r->tpot, is_text, 5);
    sh_out_int(o, "preemptions", "preemptions", (long long)r->preemptions);
    sh_out_real(o, "kv_occupancy_mean", "KV in use", r->occupancy_mean, 4);
    if (is_text)
        sh_out_int(o, "largest_batch", "largest batch", (long long)r->largest_batch);
    if (is_text && r->has_max)
        sh_out_real(o, "max_rate", "max. rate", r->max_is_open ? (double)INFINITY : r->max_rate, 3);
    if (!is_text) {
        sh_out_real(o, "max_rate_requests_per_s", "max. rate",
                    r->has_max && !r->max_is_open ? r->max_rate : (double)NAN, 3);
        details(o, r);
    }
}

static void notes(struct sh_out *o, const struct sh_sim_study *s)
{
    const struct sh_sim_efficiency *f = &s->efficiency;
    sh_out_note(o, "The cache has %.2f GiB of each GPU: what weights leave of --util, --reserve and --overhead.",
                (double)s->row[0].pool / 0x1p30);
    if (s->n_point)
        sh_out_note(o, "Calibrated on %d steps: memory %.3f, compute %.3f of the board's numbers, %.3f ms a step; off "
                    "by %.1f %% (root mean square), %.1f %% at most.", s->n_point, f->weights, f->products,
                    1e3 * f->overhead_s, 100 * s->fit.rms, 100 * s->fit.worst);
    if (s->fit.is_bound)
        sh_out_note(o, "A measured step is faster than the board's numbers allow: check model, formats and --tp.");
    if (f->weights == 1 && f->products == 1 && f->overhead_s <= 0)
        sh_out_note(o, "Steps take the least time that bandwidth and compute allow; real ones take longer "
                    "(--efficiency, --step-overhead, or --calibrate FILE).");
    if (s->source.file.skipped)
        sh_out_note(o, "%lld rows without a prompt or an answer were left out.", s->source.file.skipped);
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *r = &s->row[i];
        if (i && s->row[i - 1].evidence && s->source.n > 1 && i % s->source.n)
            continue;
        sh_out_note(o, "%s: %s", r->plan, r->evidence);
        if (r->refused)
            sh_out_note(o, "%s: %llu requests were refused, since not even alone their cache fits.", r->plan,
                        (unsigned long long)r->refused);
        if (r->max_is_open)
            sh_out_note(o, "%s: the limits hold however fast these requests come; ask for more requests.", r->plan);
    }
}

void sh_sim_show(struct sh_out *o, const struct sh_sim_study *s, int is_text)
{
    int has_limits = s->args->slo_ttft >= 0 || s->args->slo_tpot >= 0;
    sh_out_list(o, "results", "continuous batching; times in seconds");
    for (int i = 0; i < s->n_row; i++) {
        row(o, &s->row[i], has_limits, is_text);
        if (s->args->timeline && !is_text)
            timeline(o, &s->row[i].occupancy);
    }
    if (s->args->timeline && !is_text)
        sh_out_show(o, "timeline");
    sh_out_end(o);
    notes(o, s);
}
