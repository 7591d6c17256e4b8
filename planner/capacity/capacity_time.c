/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity.h: the roofline of one GPU, and of a group's stages. */
#include "planner/capacity/capacity.h"

#include <math.h>

const char *const sh_bound_names[] = {"bandwidth", "compute", "link"};

struct sh_step_time sh_roofline_step(const struct sh_roofline *r, const struct sh_step_work *w)
{
    struct sh_step_time s = {0};
    double touched = r->expert_share > 0 ? 1 - pow(1 - r->expert_share, w->tokens * r->ranks) : 0;
    double adapters = sh_lora_touched(r->adapters, w->tokens - w->prompt_tokens + w->prompts);
    s.weight_bytes = r->plain_bytes + r->expert_bytes * touched + (w->logits > 0 ? r->head_bytes : 0) +
                     adapters * r->adapter_bytes;
    s.bytes = s.weight_bytes + w->cache_bytes;
    s.flops = w->tokens * r->token_flops + w->logits * r->head_flops + w->attention_flops;
    s.memory_s = s.bytes / r->bandwidth;
    s.compute_s = s.flops / r->peak;
    s.link_s = r->link_bytes > 0 ? w->tokens * r->link_bytes / r->link : 0;
    s.bound = s.compute_s > s.memory_s ? SH_BOUND_COMPUTE : SH_BOUND_BANDWIDTH;
    if (s.link_s > fmax(s.compute_s, s.memory_s))
        s.bound = SH_BOUND_LINK;
    s.s = fmax(s.memory_s, s.compute_s) + s.link_s;
    return s;
}

static double parameters_used(const struct sh_kv_parts *p, const struct sh_kv_facts *f)
{
    static const enum sh_kv_part plain[] = {SH_PART_MIX, SH_PART_FEED, SH_PART_SHARED, SH_PART_ROUTER, SH_PART_NORM};
    double n = 0;
    for (int i = 0; i < 5; i++)
        n += (double)p->parameters[plain[i]];
    return n + (f->experts ? (double)p->parameters[SH_PART_EXPERTS] * f->used / f->experts : 0);
}

/* Sums over the GPUs of a layer's two all-reduces are rings: each sends 2 (tp - 1) / tp of what is summed. Experts
 * elsewhere take a token's vector there and back, as often as it has experts. */
static double link_bytes(const struct sh_capacity_ask *a, const struct sh_capacity_stage *g)
{
    const struct sh_kv_facts *f = &a->shape->f;
    double vector = 2.0 * f->hidden, bytes = 0;
    for (int i = g->first; i < g->last; i++) {
        const struct sh_kv_layer *l = &a->shape->layer[i];
        int sums = (l->mix != SH_MIX_NONE) + (l->feed != SH_FEED_NONE);
        bytes += sums * 2.0 * (a->tp - 1) / a->tp * vector;
        if (l->feed == SH_FEED_EXPERTS)
            bytes += 2.0 * f->used * vector * (a->ep - 1) / a->ep;
    }
    return bytes + (a->pp > 1 ? vector : 0);
}

struct sh_roofline sh_capacity_roofline(const struct sh_capacity_ask *a, int stage)
{
    struct sh_capacity_stage g;
    struct sh_roofline r = {0};
    const struct sh_kv_facts *f = &a->shape->f;
    sh_split_stage(a, stage, 1, &g);
    sh_kv_weights_again(a->shape, g.first, g.last, &a->weights, &g.parts);
    double experts = (double)g.parts.bytes[SH_PART_EXPERTS], tp = a->tp;
    double apart = (double)(g.parts.bytes[SH_PART_EMBED] + g.parts.bytes[SH_PART_POSITIONS] +
                            g.parts.bytes[SH_PART_VISION] + g.parts.bytes[SH_PART_HEAD]);
    r.plain_bytes = ((double)sh_kv_parts_sum(g.parts.bytes) - experts - apart) / tp;
    if (f->experts) {
        r.expert_bytes = experts / f->experts * ((f->experts + a->ep - 1) / a->ep) / tp;
        r.expert_share = (double)f->used / f->experts;
    }
    double lora = (double)sh_lora_parameters(a->shape, g.first, g.last, &a->lora, a->tp);
    r.adapters = (double)a->lora.adapters;
    r.adapter_bytes = 2 * lora;
    r.token_flops = 2 * parameters_used(&g.parts, f) / tp + 2 * lora;
    if (stage + 1 == a->pp) {           /* a tied embedding is the head, if it is in the same stage */
        int tied = f->tied && a->pp == 1;
        uint64_t bytes = g.parts.bytes[SH_PART_HEAD] + (tied ? g.parts.bytes[SH_PART_EMBED] : 0);
        uint64_t n = g.parts.parameters[SH_PART_HEAD] + (tied ? g.parts.parameters[SH_PART_EMBED] : 0);
        r.head_bytes = (double)bytes / tp;
        r.head_flops = 2 * (double)n / tp;
    }
    r.link_bytes = a->link > 0 ? link_bytes(a, &g) : 0;
    r.bandwidth = a->bandwidth;
    r.peak = a->peak;
    r.link = a->link;
    r.ranks = a->ep;
    return r;
}

/* FLOPs for each token that a query sees: scores and values, two each for an element. In a latent layer every head
 * works on the latent itself. */
static double pair_flops(const struct sh_kv_shape *s, int layer, int tp)
{
    const struct sh_kv_facts *f = &s->f;
    const struct sh_kv_layer *l = &s->layer[layer];
    switch ((enum sh_mix)l->mix) {
    case SH_MIX_FULL:
    case SH_MIX_WINDOW:
    case SH_MIX_CHUNK:
    case SH_MIX_BLOCKS: return 2.0 * l->heads * (l->width + l->values) / tp;
    case SH_MIX_LATENT:
    case SH_MIX_INDEXED: return 2.0 * f->heads * (2.0 * f->latent + l->rope) / tp;
    case SH_MIX_POOLED: return 2.0 * l->heads * (l->width + l->values) / tp / l->pool;
    default: return 0;
    }
}

/* And of the index, whose heads are the same on each rank, unless each goes with KV heads. */
static double index_flops(const struct sh_kv_shape *s, int layer, int tp)
{
    const struct sh_kv_layer *l = &s->layer[layer];
    double all = 2.0 * s->f.index_heads * s->f.index_dim;
    if (l->indexed)
        return all / l->pool;
    all /= s->f.index_pool ? s->f.index_pool : 1;
    return l->mix == SH_MIX_INDEXED ? all : l->mix == SH_MIX_BLOCKS ? all / tp : 0;
}

/* The most tokens that an index chooses; 0: it does not choose. */
static uint64_t most_chosen(const struct sh_kv_shape *s, int layer)
{
    const struct sh_kv_layer *l = &s->layer[layer];
    int chooses = l->mix == SH_MIX_LATENT || l->mix == SH_MIX_INDEXED || l->mix == SH_MIX_BLOCKS || l->indexed;
    return chooses ? (uint64_t)s->f.index_topk * (l->indexed ? (uint64_t)l->pool : 1) : 0;
}

/* The same for tokens of a window that a layer has besides. */
static double window_flops(const struct sh_kv_shape *s, int layer, int tp)
{
    const struct sh_kv_layer *l = &s->layer[layer];
    return l->mix == SH_MIX_POOLED ? pair_flops(s, layer, tp) * l->pool : 0;
}

/* 1 + 2 + ..., each at most `window`, of so many queries. */
static double bounded(double length, double window)
{
    return length <= window ? length * (length + 1) / 2 : window * (window + 1) / 2 + (length - window) * window;
}

/* Tokens that the queries of a prompt see, all together: 1 + 2 + ..., bounded by the window. */
static double pairs(const struct sh_kv_shape *s, int layer, double length)
{
    int mix = s->layer[layer].mix;
    uint64_t chosen = most_chosen(s, layer);
    double w = chosen ? (double)chosen : s->f.window;
    if ((!chosen && mix != SH_MIX_WINDOW && mix != SH_MIX_CHUNK) || length <= w)
        return length * (length + 1) / 2;
    if (chosen || mix == SH_MIX_WINDOW)
        return bounded(length, w);
    double whole = (double)((uint64_t)length / (uint64_t)s->f.window), rest = length - whole * w;
    return whole * w * (w + 1) / 2 + rest * (rest + 1) / 2;
}

struct sh_step_work sh_capacity_decode_work(const struct sh_capacity_ask *a, int stage, uint64_t length)
{
    struct sh_kv_bytes b = sh_split_cache(a, stage, length);
    struct sh_step_work w = {.tokens = 1, .logits = stage + 1 == a->pp, .cache_bytes = (double)b.sequence};
    int n = a->shape->f.layers, last = sh_split_first(n, a->pp, stage + 1);
    for (int i = sh_split_first(n, a->pp, stage); i < last; i++) {
        uint64_t seen = sh_kv_kept(a->shape, &a->rule, i, length);
        uint64_t prefix = sh_kv_shared(a->shape, &a->rule, i, length);
        uint64_t all = seen + prefix, most = most_chosen(a->shape, i), window = (uint64_t)a->shape->f.window;
        if (most && all > most) {       /* the rest of the latents is not read */
            w.cache_bytes -= (double)(all - most) * (double)(sh_kv_cell(a->shape, &a->rule, i, a->tp) -
                                                             sh_kv_index_cell(a->shape, &a->rule, i));
            seen = most;
            prefix = 0;
        }
        w.attention_flops += pair_flops(a->shape, i, a->tp) * (double)(seen + prefix) +
                             index_flops(a->shape, i, a->tp) * (double)all +
                             window_flops(a->shape, i, a->tp) * (double)(length < window ? length : window);
    }
    w.cache_bytes += (double)b.prefix;
    return w;
}

struct sh_step_work sh_capacity_prompt_work(const struct sh_capacity_ask *a, int stage, uint64_t length)
{
    struct sh_step_work w = {.tokens = (double)length, .logits = stage + 1 == a->pp, .prompt_tokens = (double)length,
                             .prompts = 1};
    int n = a->shape->f.layers, last = sh_split_first(n, a->pp, stage + 1);
    for (int i = sh_split_first(n, a->pp, stage); i < last; i++)
        w.attention_flops += pair_flops(a->shape, i, a->tp) * pairs(a->shape, i, (double)length) +
                             index_flops(a->shape, i, a->tp) * (double)length * ((double)length + 1) / 2 +
                             window_flops(a->shape, i, a->tp) * bounded((double)length, a->shape->f.window);
    return w;
}
