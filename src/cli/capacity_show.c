/* SPDX-License-Identifier: Apache-2.0 */
/* A single result in full (capacity_show.h). */
#include "src/cli/capacity_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void size(struct sh_out *o, const char *term, double bytes, const char *how)
{
    sh_out_item(o);
    sh_out_text(o, "term", "term", term);
    sh_out_real(o, "bytes", "bytes", bytes, 0);
    sh_out_real(o, "gib", "GiB", bytes / 0x1p30, 3);
    sh_out_real(o, "gb", "GB", bytes / 1e9, 3);
    sh_out_text(o, "how", "how", how);
}

static void board_terms(struct sh_out *o, const struct sh_capacity_answer *a)
{
    const struct sh_gpu *b = a->board;
    char how[96];
    if (b->gb > 0)
        size(o, "memory as sold", b->gb * 1e9,
             b->dies > 1 ? "vendor's GB; several devices" : "vendor's GB, 10^9 bytes");
    if (b->mib > 0)
        size(o, "as reported by the driver", b->mib * 0x1p20, "total of nvidia-smi and similar tools");
    if (b->visible > 0)
        size(o, "as visible to programs", b->visible * 0x1p30, "total that CUDA reports");
    snprintf(how, sizeof how, "floor(%.0f * %g)", (double)a->ask->memory, a->ask->util);
    size(o, "limit", (double)a->c.limit, how);
}

static void weight_terms(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_stage *g)
{
    const struct sh_capacity_ask *k = a->ask;
    char name[64], how[160];
    for (int i = 0; i < SH_N_PART; i++) {
        int experts = i == SH_PART_EXPERTS && k->ep > 1;
        double here = experts ? ceil((double)k->shape->f.experts / k->ep) / k->shape->f.experts : 1;
        if (!g->parts.parameters[i])
            continue;
        snprintf(name, sizeof name, "  %s", sh_kv_part_names[i]);
        snprintf(how, sizeof how, "%llu parameters%s%s", (unsigned long long)g->parts.parameters[i],
                 k->tp > 1 ? " / tp" : "", experts ? ", largest share of an ep rank" : "");
        size(o, name, (double)g->parts.bytes[i] * here / k->tp, how);
    }
    if (g->draft_weights)
        size(o, "  draft model", (double)g->draft_weights, k->draft->f.name);
    if (g->lora) {
        snprintf(how, sizeof how, "%llu adapters of rank %llu, 16 bits", (unsigned long long)k->lora.adapters,
                 (unsigned long long)k->lora.rank);
        size(o, "  adapters", (double)g->lora, how);
    }
    size(o, "weights", (double)g->weights, k->tp > 1 ? "ceil(sum / tp)" : "sum");
    size(o, "overhead", (double)k->overhead, "--overhead");
    size(o, "room for the cache", (double)a->c.room, "limit - weights - overhead");
}

static void cache_terms(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    char how[160];
    const struct sh_kv_bytes *kv = &a->c.stage[a->c.fullest].kv;
    snprintf(how, sizeof how, "layers with a cache * KV heads per GPU * (key + value), %.60s", a->kv);
    size(o, "cache per token", (double)kv->token, how);
    snprintf(how, sizeof how, "%llu tokens, pages of %llu%s", (unsigned long long)r->length,
             (unsigned long long)r->page,
             a->budget ? ", within the budget and --headroom" : "");
    size(o, "cache per sequence", (double)kv->sequence, how);
    size(o, "  fixed", (double)r->fixed, "windows, states, budgeted layers");
    size(o, "  per further token", (double)r->further, "added by each token at this length");
    if (kv->states)
        size(o, "  states", (double)kv->states, "of layers that carry one");
    if (kv->prefix)
        size(o, "shared prefix", (double)kv->prefix, "held once, rounded up to pages");
    snprintf(how, sizeof how, "%llu sequences%s", (unsigned long long)r->batch,
             kv->prefix ? ", including the prefix" : "");
    double each = ceil((double)r->batch / a->ask->ep);
    size(o, "cache in use", each * (double)kv->sequence + (each > 0 ? (double)kv->prefix : 0), how);
    if (r->fits)
        size(o, "left over", (double)r->room - each * (double)kv->sequence - (double)kv->prefix, "room - cache in use");
    else
        size(o, "missing", (double)r->shortfall, r->unfit);
}

static void terms(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    const struct sh_capacity_stage *g = &a->c.stage[a->c.fullest];
    char label[160];
    snprintf(label, sizeof label, "memory per GPU, layers %d to %d (stage %d of %d, the fullest)", g->first,
             g->last - 1, a->c.fullest + 1, a->c.n_stage);
    sh_out_list(o, "terms", label);
    board_terms(o, a);
    weight_terms(o, a, g);
    cache_terms(o, a, r);
    if (a->budget && r->uniform)
        size(o, "if all layers had the largest size", (double)r->uniform,
             "per sequence, in a runtime with one size for all layers");
    if (a->budget)
        size(o, "if pages are not compacted", (double)r->scattered,
             "expected with evicted tokens scattered over pages");
    sh_out_end(o);
}

static void server(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r, int is_text)
{
    struct sh_server_term t[SH_SERVER_TERMS];
    char label[200];
    int n = sh_server_terms(a->ask, &a->server, a->c.fullest, t);
    snprintf(label, sizeof label, "estimated server overhead: leaves %.2f to %.2f GiB, %llu to %llu sequences",
             r->room_low / 0x1p30, r->room_high / 0x1p30, (unsigned long long)r->batch_low,
             (unsigned long long)r->batch_high);
    sh_out_list(o, "server", label);
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        sh_out_text(o, "term", "term", t[i].name);
        sh_out_real(o, "low_bytes", is_text ? "from GiB" : "low", is_text ? t[i].low / 0x1p30 : t[i].low,
                    is_text ? 2 : 0);
        sh_out_real(o, "high_bytes", is_text ? "to GiB" : "high", is_text ? t[i].high / 0x1p30 : t[i].high,
                    is_text ? 2 : 0);
        sh_out_text(o, "source", "source", t[i].source);
    }
    sh_out_end(o);
}

static void stages(struct sh_out *o, const struct sh_capacity_answer *a)
{
    sh_out_list(o, "stages", "pipeline stages, bytes per GPU");
    for (int i = 0; i < a->c.n_stage; i++) {
        const struct sh_capacity_stage *g = &a->c.stage[i];
        sh_out_item(o);
        sh_out_int(o, "stage", "stage", i);
        sh_out_int(o, "first_layer", "first layer", g->first);
        sh_out_int(o, "last_layer", "last layer", g->last - 1);
        sh_out_int(o, "weights_bytes_per_gpu", "weights", (long long)g->weights);
        sh_out_int(o, "kv_bytes_per_token_per_gpu", "KV per token", (long long)g->kv.token);
        sh_out_int(o, "kv_bytes_per_sequence_per_gpu", "KV per sequence",
                   g->kv.sequence > INT64_MAX ? INT64_MAX : (long long)g->kv.sequence);
    }
    sh_out_end(o);
}

/* The largest batch at each length: powers of two up to the model's context length or --length, where a sequence has
 * tokens after the shared prefix. */
static void frontier(struct sh_out *o, const struct sh_capacity_answer *a)
{
    struct sh_capacity_ask k = *a->ask;
    struct sh_capacity c;
    struct sh_err ignored;
    uint64_t most = k.shape->f.max_pos > 0 ? (uint64_t)k.shape->f.max_pos : 1 << 20;
    most = most > a->ask->length ? most : a->ask->length;
    k.batch = 0;
    sh_out_list(o, "frontier", "largest batch at each length");
    for (uint64_t n = 512; n <= most && n <= SH_KV_MOST_TOKENS; n *= 2) {
        k.length = n;
        if (n <= k.rule.prefix)
            continue;
        if (sh_capacity(&k, &c, &ignored))
            break;
        sh_out_item(o);
        sh_out_int(o, "length", "length", (long long)n);
        sh_out_int(o, "max_batch", "max. batch", (long long)c.max_batch);
        sh_out_real(o, "decode_tokens_per_s", "decode tokens/s", c.decode_rate, 1);
        sh_out_real(o, "time_per_token_s", "s per token", c.decode_s, 5);
        sh_out_real(o, "time_to_first_token_s", "s to the first", c.prefill_s, 4);
        sh_out_text(o, "bound", "bound", c.unfit ? "memory" : sh_bound_names[c.step.bound]);
    }
    sh_out_end(o);
}

void sh_capacity_show_lists(struct sh_out *o, const struct sh_capacity_answer *a, int is_text)
{
    struct sh_capacity_row r;
    sh_capacity_row(a, &r);
    terms(o, a, &r);
    server(o, a, &r, is_text);
    if (a->c.n_stage > 1)
        stages(o, a);
    frontier(o, a);
}

/* ---- remarks that a number alone would hide ---- */

static void bottleneck(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    if (!r->fits) {
        if (r->room == 0)
            sh_out_note(o, "The cache is not the bottleneck: there is no room for %s, whatever is evicted.", r->unfit);
        return;
    }
    if (a->c.step.bound == SH_BOUND_COMPUTE)
        sh_out_note(o, "The cache is not the bottleneck: a step is compute-bound.");
    else if (r->cache_share < 0.2)
        sh_out_note(o, "The cache is not the bottleneck: it is %.1f %% of what a step reads; without it a step would "
                    "take %.2f ms instead of %.2f.", r->cache_share * 100,
                    (r->decode_s * (1 - r->cache_share)) * 1e3, r->decode_s * 1e3);
}

static void layers(struct sh_out *o, const struct sh_capacity_answer *a)
{
    const struct sh_capacity_ask *k = a->ask;
    int window = 0, idle = 0, states = sh_kv_shape_states(k->shape);
    for (int i = 0; i < k->shape->f.layers; i++) {
        int mix = k->shape->layer[i].mix, local = mix == SH_MIX_WINDOW || mix == SH_MIX_CHUNK;
        window += local;
        idle += local && sh_kv_add(sh_kv_budget(&k->rule, i, k->length), k->rule.headroom) >=
                             (uint64_t)k->shape->f.window;
    }
    static const char *const charged[] = {"the window", "the whole length (--windows ignore)",
                                          "the window and what is in flight, in pages",
                                          "the window and what is in flight"};
    if (window)
        sh_out_note(o, "%d of %d layers see at most %d tokens; their cache is counted as "
                       "%s.", window, k->shape->f.layers,
                    k->shape->f.window, charged[k->rule.windows]);
    if (a->budget && window && idle && k->rule.windows == SH_WINDOWS_MODEL)
        sh_out_note(o, "The budget frees nothing in %d layers, whose window does not exceed it.", idle);
    if (states)
        sh_out_note(o, "%d of %d layers keep a state of fixed size, which a budget does not reduce.", states,
                    k->shape->f.layers);
    if (k->shape->f.latent && k->tp > 1)
        sh_out_note(o, "The latent cache is replicated on each of the %d ranks: tp does not split it.", k->tp);
    else if (k->shape->f.kv_heads % k->tp && !k->shape->f.latent)
        sh_out_note(o, "%d KV heads on %d ranks: each holds %d, %s; a larger tp does not shrink the cache.",
                    k->shape->f.kv_heads, k->tp, (k->shape->f.kv_heads + k->tp - 1) / k->tp,
                    k->tp > k->shape->f.kv_heads ? "copies of one another" : "and some fewer");
}

static void notes(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    const struct sh_capacity_ask *k = a->ask;
    if (a->enough_tp)
        sh_out_note(o, "It fits on %d GPUs: --tp %d.", a->enough_tp * k->pp * k->ep, a->enough_tp);
    bottleneck(o, a, r);
    layers(o, a);
    if (k->shape->f.heads % k->tp)
        sh_out_note(o, "%d heads are not divisible by tp %d: servers refuse this shape.", k->shape->f.heads, k->tp);
    if (k->shape->f.max_pos && r->length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "The model's context length is %d tokens, less than --length.", k->shape->f.max_pos);
    else if (k->shape->f.max_pos && r->max_length < SH_KV_MOST_TOKENS && r->max_length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "\"largest length\" is what fits in memory; the model's context length is %d tokens.",
                    k->shape->f.max_pos);
    if (a->budget && k->rule.page > 1)
        sh_out_note(o, "Pages of %llu tokens: the batch assumes that eviction frees whole pages (compaction).",
                    (unsigned long long)k->rule.page);
    if (a->budget && k->rule.prefix)
        sh_out_note(o, "The budget counts tokens after the shared prefix, which is kept in full.");
    if (k->shape->f.no_vision)
        sh_out_note(o, "The vision encoder's weights are not included; --overhead can account for them.");
    if (k->lora.adapters)
        sh_out_note(o, "Each adapter has matrices for %s. The time to start their kernels is not included.",
                    k->shape->f.experts ? "attention and shared experts, not for the other experts"
                                        : "attention and feed-forward blocks");
    if (k->draft)
        sh_out_note(o, "The draft model's memory is included; tokens/s are without speculation.");
    if (k->tp * k->pp * k->ep > 1 && k->link <= 0)
        sh_out_note(o, "The times do not include transfers between GPUs; --link includes them.");
    if (k->shape->f.experts)
        sh_out_note(o, "Experts are assumed to be equally likely.");
}

/* ---- the answer ---- */

static void speeds(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    char line[200];
    if (!r->fits)
        return;
    snprintf(line, sizeof line, "%.1f tokens/s for %llu sequences, %.2f ms per token, bound by %s", r->decode_rate,
             (unsigned long long)r->batch, r->decode_s * 1e3, r->bound);
    sh_out_text(o, "decode", "decoding, at most", line);
    snprintf(line, sizeof line, "%.1f GB of weights + %.1f GB of cache / %.0f GB/s; %.2f TFLOP / %.0f TFLOP/s",
             a->c.step.weight_bytes / 1e9, (a->c.step.bytes - a->c.step.weight_bytes) / 1e9, a->ask->bandwidth / 1e9,
             a->c.step.flops / 1e12, a->ask->peak / 1e12);
    sh_out_text(o, "step", "  per step and GPU", line);
    snprintf(line, sizeof line, "%.1f tokens/s, %.3f s to the first token, bound by %s", r->prefill_rate, r->prefill_s,
             r->prefill_bound);
    sh_out_text(o, "prefill", "one prompt, at most", line);
    if (r->engine) {
        char says[SH_ENGINE_TEXT];
        snprintf(line, sizeof line, "%.1f tokens/s, %.2f ms per token, %.3f s to the first of one prompt",
                 r->expected_rate, r->expected_s * 1e3, r->expected_first_s);
        sh_out_text(o, "expected", "expected", line);
        if (!isnan(r->expected_rest_s)) {
            snprintf(line, sizeof line, "%.3f s to the first token if the shared prefix is in the cache",
                     r->expected_rest_s);
            sh_out_text(o, "expected_after_prefix", "  after the prefix", line);
        }
        sh_out_text(o, "expected_error", "  error",
                    sh_engine_says(a->engine, a->board, a->ask->shape, says));
    }
    if (r->priced) {
        snprintf(line, sizeof line, "%.4f USD at %g USD per GPU and hour", r->usd, a->price);
        sh_out_text(o, "cost", "cost per million tokens", line);
    }
}

void sh_capacity_show_one(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    char line[240];
    snprintf(line, sizeof line, "%s, %llu parameters, weights as %s", r->model, (unsigned long long)r->parameters,
             r->weights);
    sh_out_text(o, "model", "model", line);
    char share[32] = "all";
    if (r->util < 1)
        snprintf(share, sizeof share, "%g %%", 100 * r->util);
    snprintf(line, sizeof line, "%d x %s (tp %d, pp %d, ep %d), %s of the memory", r->tp * r->pp * r->ep, r->gpu, r->tp,
             r->pp, r->ep, share);
    sh_out_text(o, "gpus", "GPUs", line);
    snprintf(line, sizeof line, "%s, %s", r->kv, r->budget ? r->budget : "full: nothing is evicted");
    sh_out_text(o, "cache", "cache", line);
    snprintf(line, sizeof line, "%llu sequences of %llu tokens", (unsigned long long)r->max_batch,
             (unsigned long long)r->length);
    sh_out_text(o, "max_batch", "largest batch", line);
    if (r->max_length == SH_KV_MOST_TOKENS)
        snprintf(line, sizeof line, "any: the cache does not grow with the length");
    else
        snprintf(line, sizeof line, "%llu tokens for %llu sequence%s", (unsigned long long)r->max_length,
                 (unsigned long long)(a->ask->batch ? a->ask->batch : 1), a->ask->batch > 1 ? "s" : "");
    sh_out_text(o, "max_length", "largest length", line);
    if (a->ask->batch && r->max_budget < r->length) {
        snprintf(line, sizeof line, "%llu of %llu tokens (%.1f %%) for %llu sequences",
                 (unsigned long long)r->max_budget, (unsigned long long)r->length,
                 100 * (double)r->max_budget / (double)r->length,
                 (unsigned long long)a->ask->batch);
        sh_out_text(o, "max_budget", "largest budget", line);
    }
    if (!r->fits) {
        snprintf(line, sizeof line, "%s: %llu bytes short (%.3f GiB, %.3f GB)", r->unfit,
                 (unsigned long long)r->shortfall,
                 (double)r->shortfall / 0x1p30, (double)r->shortfall / 1e9);
        sh_out_text(o, "unfit", "does not fit", line);
    }
    if (r->budget) {
        snprintf(line, sizeof line, "%llu other sequences, with the prompt held in full",
                 (unsigned long long)r->with_prompt);
        sh_out_text(o, "with_prompt", "during a prompt", line);
        sh_out_text(o, "evidence", "evidence",
                    r->evidence ? r->evidence : "quality under this budget was not measured");
    }
    speeds(o, a, r);
    sh_capacity_show_lists(o, a, 1);
    notes(o, a, r);
}
