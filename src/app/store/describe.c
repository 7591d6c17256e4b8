/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/store/describe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the finished layers of a run: the causal scores that they hold, windows ignored, and their tokens, summed over
 * layers. */
static int count_done(struct sh_store *s, const struct sh_stored_run *r, long long *scores, long long *tokens,
                      struct sh_err *e)
{
    struct sh_stored_sequence *q;
    int n, bad = 0;
    *scores = *tokens = 0;
    if (sh_store_sequences(s, r->id, &q, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        for (int layer = r->first_layer; layer <= r->last_layer && !bad; layer++) {
            int state = sh_store_layer(s, q[i].id, layer, e);
            bad = state < 0;
            *tokens += state > 0 ? q[i].n_tokens : 0;
            struct sh_layer_heads heads = {0, 0};
            bad = bad || (state == SH_LAYER_DONE && sh_store_heads(s, q[i].id, layer, r, &heads, e));
            *scores += (long long)q[i].n_tokens * (q[i].n_tokens + 1) / 2 * heads.query;
        }
    sh_stored_sequences_free(q, n);
    if (!bad && r->orderless)
        *scores = sh_store_scores(s, r->id, e);
    return bad || *scores < 0 ? -1 : 0;
}

int sh_describe_run(struct sh_out *o, struct sh_store *s, const struct sh_stored_run *r, struct sh_err *e)
{
    long long scores, done, bytes = count_done(s, r, &scores, &done, e) ? -1 : sh_store_blob_bytes(s, r->id, e);
    if (bytes < 0)
        return -1;
    int n_layer = r->last_layer - r->first_layer + 1;
    double tokens_done = (double)done / n_layer;        /* a sequence with half of its layers counts by half */
    sh_out_text(o, "model", "model", r->model);
    sh_out_text(o, "weights", "weights", r->weights);
    sh_out_int(o, "layers", "layers", r->n_layer);
    sh_out_int(o, "heads", "heads", r->n_head);
    sh_out_int(o, "kv_heads", "KV heads", r->n_kv_head);
    sh_out_int(o, "first_layer", "first layer recorded", r->first_layer);
    sh_out_int(o, "last_layer", "last layer recorded", r->last_layer);
    sh_out_int(o, "sequences", "sequences", r->n_sequence);
    sh_out_int(o, "tokens", "tokens", r->n_tokens);
    sh_out_int(o, "layers_done", "layers finished", r->n_done);
    sh_out_int(o, "layers_wanted", "layers requested", (long long)r->n_sequence * n_layer);
    sh_out_real(o, "tokens_done", "tokens finished", tokens_done, 0);
    sh_out_text(o, "record", "record", sh_record_names[r->record]);
    sh_out_text(o, "codec", "codec", sh_codec_names[r->codec]);
    sh_out_text(o, "vectors", "vectors", r->vectors);
    sh_out_int(o, "scores", "scores", scores);
    sh_out_int(o, "bytes", "bytes", bytes);
    sh_out_real(o, "bytes_per_score", "bytes per score", scores ? (double)bytes / (double)scores : NAN, 4);
    sh_out_real(o, "seconds", "seconds", r->seconds, 2);
    sh_out_real(o, "tokens_per_s", "tokens/s", r->seconds > 0 ? tokens_done / r->seconds : NAN, 1);
    sh_out_text(o, "backend", "backend", r->backend);
    sh_out_text(o, "device", "device", r->device);
    sh_out_text(o, "dtype", "dtype", r->dtype);
    sh_out_int(o, "weight_bits", "weight bits", r->weight_bits);
    return 0;
}

/* The most memory that this program has held, mapped weights included. (getrusage would include the parent's before it
 * started us.) */
static long long peak_memory(void)
{
    char line[128];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM:", 6))
            kib = strtoll(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
}

void sh_describe_memory(struct sh_out *o, const struct sh_devices *d, size_t needs_bytes)
{
    size_t peak = 0, used = 0;
    sh_out_int(o, "peak_memory_bytes", "peak memory bytes", peak_memory());
    for (int i = 0; i < d->n; i++) {
        struct sh_props p;
        d->backend->props(d->at[i], &p);
        peak = p.peak_bytes > peak ? p.peak_bytes : peak;
        used = p.used_bytes > used ? p.used_bytes : used;
    }
    if (!needs_bytes)
        return;
    sh_out_int(o, "device_needs_bytes", "device needs bytes", (long long)needs_bytes);
    sh_out_int(o, "device_peak_bytes", "device peak bytes", (long long)peak);
    sh_out_int(o, "device_used_bytes", "device used bytes", (long long)used);
}

int sh_describe_run_of(struct sh_out *o, struct sh_store *s, int run, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_store_runs(s, &runs, &n, e))
        return -1;
    for (int i = 0; i < n; i++)
        if (runs[i].id == run)
            bad = sh_describe_run(o, s, &runs[i], e);
    sh_stored_runs_free(runs, n);
    return bad;
}
