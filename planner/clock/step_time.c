/* SPDX-License-Identifier: Apache-2.0 */
/* See step_time.h. */
#include "planner/clock/step_time.h"

#include <math.h>
#include <string.h>

enum { CHOSEN_HEADS = 64 };             /* that kernels of chosen tokens compute at least          */

const char *const sh_clock_term_names[SH_N_TERM] = {"dense weights", "experts", "attention", "states", "vectors",
                                                    "layers", "sums", "host"};

int sh_clock_generation(const struct sh_gpu *b, enum sh_generation *out)
{
    for (int i = 0; i < SH_N_GEN; i++)
        if (!strcmp(b->generation, sh_generation_names[i])) {
            *out = (enum sh_generation)i;
            return 1;
        }
    *out = b->f4 > 0 ? SH_GEN_BLACKWELL : SH_GEN_HOPPER;
    return 0;
}

const char *sh_clock_kind(const struct sh_kv_shape *s)
{
    if (sh_kv_shape_count(s, SH_MIX_INDEXED))
        return "index";
    if (sh_kv_shape_count(s, SH_MIX_LATENT))
        return "latent";
    if (sh_kv_shape_states(s))
        return "linear";
    return s->f.experts ? "experts" : "dense";
}

int sh_clock_layout_check(const struct sh_clock_layout *l, const struct sh_kv_shape *s, struct sh_err *e)
{
    const char *name = s->f.name;
    long long gpus = (long long)l->tp * l->dp;
    if (l->tp < 1 || l->ep < 1 || l->dp < 1 || l->pp < 1)
        return sh_misused(e, "found tp %d, ep %d, dp %d, pp %d, expected at least 1", l->tp, l->ep, l->dp, l->pp);
    if (l->pp > s->f.layers || l->pp > SH_CAPACITY_STAGES)
        return sh_misused(e, "%s: --pp %d: expected at most %d stages", name, l->pp,
                          s->f.layers < SH_CAPACITY_STAGES ? s->f.layers : SH_CAPACITY_STAGES);
    if (l->ep > 1 && !s->f.experts)
        return sh_misused(e, "%s: --ep %d: the model has no experts", name, l->ep);
    if (l->ep > 1 && (l->ep > s->f.experts || gpus % l->ep))
        return sh_misused(e, "%s: --ep %d: expected a divisor of tp x dp, which is %lld, at most %d experts", name,
                          l->ep, gpus, s->f.experts);
    return 0;
}

static int is_narrow(const struct sh_kv_type *t)
{
    return !strncmp(t->name, "nvfp4", 5);
}

/* Operands of a format meet in products at this rate: 4-bit weights in groups, and those that the GPU has no
 * instructions for, are widened to 16 bits; mxfp4 weights meet f8 operands. The kernels for groups use the instructions
 * of older generations, half as fast on those that have 4-bit ones. */
static double peak_of(const struct sh_kv_type *t, const struct sh_gpu *b)
{
    double rate = b->f16;
    if (t->f8_math && b->f8 > 0)
        rate = b->f8;
    else if (b->f4 > 0 && is_narrow(t))
        rate = b->f4;
    else if (b->f4 > 0 && b->f8 > 0 && !strncmp(t->name, "mxfp4", 5))
        rate = b->f8;
    else if (b->f4 > 0 && !strncmp(t->name, "int4", 4))
        rate = b->f16 / 2;
    return rate * 1e12 / b->dies;
}

static const struct sh_kv_type *attention_type(const struct sh_weight_types *t)
{
    return t->attention.bits ? &t->attention : &t->matrices;
}

static void put_weights(const struct sh_capacity_ask *a, const struct sh_gpu *b, struct sh_clock *c)
{
    const struct sh_kv_facts *f = &a->shape->f;
    const struct sh_weight_types *t = &a->weights;
    struct sh_kv_parts p = {{0}, {0}}, ends = {{0}, {0}}, again = {{0}, {0}};
    double tp = c->layout.tp, all = tp * c->layout.dp;
    sh_kv_weights_layers(a->shape, 0, f->layers, t, &p);
    sh_kv_weights_again(a->shape, 0, f->layers, t, &p);
    sh_kv_weights_again(a->shape, 0, f->layers, t, &again);
    sh_kv_weights_first(a->shape, t, &ends);
    sh_kv_weights_last(a->shape, t, 0, &ends);
    c->expert_bytes = (double)p.bytes[SH_PART_EXPERTS] / all;
    c->dense_bytes = ((double)sh_kv_parts_sum(p.bytes) - (double)p.bytes[SH_PART_EXPERTS]) / tp;
    c->narrow_bytes = (is_narrow(attention_type(t)) ? (double)p.bytes[SH_PART_MIX] / tp : 0) +
                      (is_narrow(&t->matrices) ? (double)(p.bytes[SH_PART_FEED] + p.bytes[SH_PART_SHARED]) / tp : 0);
    c->share = f->experts ? (double)f->used / f->experts : 0;
    double rest = (double)(p.parameters[SH_PART_FEED] + p.parameters[SH_PART_SHARED]);
    c->dense_s = 2 * ((double)p.parameters[SH_PART_MIX] / peak_of(attention_type(t), b) +
                      rest / peak_of(&t->matrices, b) + (double)p.parameters[SH_PART_ROUTER] / c->peak) / tp;
    c->expert_s = 2 * (double)p.parameters[SH_PART_EXPERTS] * c->share / peak_of(&t->experts, b) / all;
    int head = f->tied ? SH_PART_EMBED : SH_PART_HEAD;
    c->head_bytes = (double)(ends.bytes[head] + (f->tied ? ends.bytes[SH_PART_HEAD] : 0)) / tp;
    c->weight_bytes = c->dense_bytes + c->expert_bytes +
                      ((double)sh_kv_parts_sum(ends.bytes) - (double)sh_kv_parts_sum(again.bytes)) / tp;
    c->head_s = 2 * (double)ends.parameters[head] / c->peak / tp;
    c->adapters = (double)a->lora.adapters;
    c->adapter_bytes = 2 * (double)sh_lora_parameters(a->shape, 0, f->layers, &a->lora, c->layout.tp);
    c->adapter_s = c->adapter_bytes / c->peak;          /* two FLOP and two bytes a parameter     */
    c->weight_bytes += c->adapters * c->adapter_bytes;
}

static void put_layers(const struct sh_capacity_ask *a, struct sh_clock *c)
{
    const double *k = c->constant;
    const struct sh_kv_facts *f = &a->shape->f;
    int tp = c->layout.tp, all = tp * c->layout.dp;
    int is_block = a->weights.matrices.bits == 8 && (a->weights.matrices.block || f->experts);
    int is_quantised = attention_type(&a->weights)->f8_math || is_narrow(attention_type(&a->weights));
    double vector = 2.0 * f->hidden, extra = k[SH_CLOCK_sum], more = k[SH_CLOCK_sum_more];
    for (int i = 0; i < f->layers; i++) {
        const struct sh_kv_layer *l = &a->shape->layer[i];
        int latent = l->mix == SH_MIX_LATENT || l->mix == SH_MIX_INDEXED || l->mix == SH_MIX_POOLED;
        c->launch_s += k[SH_CLOCK_layer] + (latent ? k[SH_CLOCK_latent] : 0) + (is_block ? k[SH_CLOCK_blocks] : 0) +
                       (is_quantised ? k[SH_CLOCK_quantised] : 0) +
                       (l->state ? k[SH_CLOCK_linear] : 0) +
                       (l->feed == SH_FEED_EXPERTS ? k[SH_CLOCK_experts] : 0);
        c->index_s += l->mix == SH_MIX_INDEXED || l->indexed ? k[SH_CLOCK_indexed] : 0;
        c->vector_bytes += vector * k[SH_CLOCK_vectors] / tp;
        c->vector_bytes += vector;      /* of the residual stream, which every GPU of a group keeps */
        if (l->feed == SH_FEED_EXPERTS)
            c->routed_bytes += vector * f->used * k[SH_CLOCK_routed] / tp;
        if (l->mix != SH_MIX_NONE && tp > 1) {
            c->sum_s += extra + more * (tp - 2);
            c->sum_bytes += 2.0 * (tp - 1) / tp * vector;
        }
        int apart = l->feed == SH_FEED_EXPERTS ? all : tp;      /* GPUs that a feed-forward block is cut over */
        if (l->feed != SH_FEED_NONE && apart > 1) {
            c->sum_s += extra + more * (apart - 2);
            c->sum_bytes += 2.0 * (apart - 1) / apart * vector * (apart > tp ? c->layout.dp : 1);
        }
    }
}

int sh_clock(const struct sh_engine *g, const struct sh_gpu *b, const struct sh_capacity_ask *ask,
             const struct sh_clock_layout *l, struct sh_clock *out, struct sh_err *e)
{
    struct sh_clock c = {.shape = ask->shape, .layout = *l};
    if (sh_clock_layout_check(l, ask->shape, e))
        return -1;
    sh_clock_generation(b, &c.generation);
    memcpy(c.constant, g->constant[c.generation], sizeof c.constant);
    c.bandwidth = ask->bandwidth;
    c.peak = b->f16 * 1e12 / b->dies;
    c.link = b->link * 1e9 / 2;
    if (l->tp * l->dp * l->pp > 1 && !(c.link > 0))
        return sh_misused(e, "the link bandwidth of %s is unknown", b->name);
    put_weights(ask, b, &c);
    put_layers(ask, &c);
    *out = c;
    return 0;
}

/* Small sums are made in one go, each GPU reading what all the others have; large ones in two, as a ring moves them. */
static double sums(const struct sh_clock *c, double tokens)
{
    if (!(c->sum_bytes > 0))
        return 0;
    double ring = tokens * c->sum_bytes / (c->constant[SH_CLOCK_link] * c->link), gpus = c->layout.tp * c->layout.dp;
    return fmin(c->sum_s + ring * gpus / 2, 1.5 * c->sum_s + ring);
}

// Not hypot(): its newest symbol asks for glibc 2.35, and nothing here comes near the limits that it guards.
static double hypotenuse(double a, double b)
{
    return sqrt(a * a + b * b);
}

double sh_clock_step(const struct sh_clock *c, const struct sh_clock_work *w, double term[SH_N_TERM])
{
    const double *k = c->constant;
    double t[SH_N_TERM], tokens = w->decoding + w->prompt_tokens, decoded = tokens > 0 ? w->decoding / tokens : 0;
    double touched = c->share > 0 ? 1 - pow(1 - c->share, w->all_tokens) : 0;
    double bytes = c->dense_bytes - c->narrow_bytes + (w->logits > 0 ? c->head_bytes : 0) +
                   c->adapter_bytes * sh_lora_touched(c->adapters, fmin(w->all_sequences, tokens));
    double dense_s = c->dense_s + c->adapter_s;
    t[SH_TERM_DENSE] = hypotenuse((bytes / k[SH_CLOCK_dense_memory] + c->narrow_bytes / k[SH_CLOCK_narrow_memory]) /
                                 c->bandwidth,
                             (w->decoding * dense_s + w->logits * c->head_s) / k[SH_CLOCK_decode_products] +
                             w->prompt_tokens * dense_s / k[SH_CLOCK_prompt_products]);
    t[SH_TERM_EXPERTS] = hypotenuse(c->expert_bytes * touched / (k[SH_CLOCK_expert_memory] * c->bandwidth),
                               w->all_tokens * c->expert_s * (decoded / k[SH_CLOCK_decode_experts] +
                                                              (1 - decoded) / k[SH_CLOCK_prompt_experts]));
    t[SH_TERM_ATTENTION] = hypotenuse(w->cache_bytes / (k[SH_CLOCK_cache_memory] * c->bandwidth),
                                 w->decode_flops / (k[SH_CLOCK_decode_attention] * c->peak)) +
                           w->prompt_flops / (k[SH_CLOCK_prompt_attention] * c->peak);
    t[SH_TERM_STATES] = 2 * w->state_bytes / (k[SH_CLOCK_state_memory] * c->bandwidth);
    t[SH_TERM_VECTORS] = tokens * (c->vector_bytes + c->routed_bytes) / c->bandwidth;
    double busy = 0;
    for (int i = 0; i < SH_TERM_LAYERS; i++)
        busy += t[i];
    t[SH_TERM_LAYERS] = w->prompt_tokens > 0 ? hypotenuse(busy, k[SH_CLOCK_launch] * c->launch_s) - busy
                                             : c->launch_s + c->index_s;
    t[SH_TERM_SUMS] = sums(c, tokens);
    t[SH_TERM_HOST] = k[SH_CLOCK_step] + k[SH_CLOCK_sequence] * w->all_sequences;
    double sum = 0;
    for (int i = 0; i < SH_N_TERM; i++)
        sum += t[i];
    if (term)
        memcpy(term, t, sizeof t);
    return sum;
}

double sh_clock_prompt_share(const struct sh_kv_shape *s)
{
    const struct sh_kv_facts *f = &s->f;
    if (!f->latent || sh_kv_shape_count(s, SH_MIX_INDEXED))
        return 1;
    return (s->d_k + s->d_v) / (2.0 * f->latent + f->rope_dim);
}

int sh_clock_prompt_tp(const struct sh_kv_shape *s, int tp)
{
    int most = s->f.heads / CHOSEN_HEADS > 1 ? s->f.heads / CHOSEN_HEADS : 1;
    return sh_kv_shape_count(s, SH_MIX_INDEXED) && tp > most ? most : tp;
}

struct sh_clock_sequence sh_clock_sequence_at(const struct sh_capacity_ask *ask, uint64_t n)
{
    struct sh_capacity_ask prompt = *ask;
    prompt.tp = sh_clock_prompt_tp(ask->shape, ask->tp);
    struct sh_kv_bytes b = sh_split_cache(ask, 0, n);
    struct sh_step_work d = sh_capacity_decode_work(ask, 0, n), p = sh_capacity_prompt_work(&prompt, 0, n);
    return (struct sh_clock_sequence){d.cache_bytes - (double)b.states, (double)b.states, d.attention_flops,
                                      p.attention_flops * sh_clock_prompt_share(ask->shape), (double)b.sequence};
}
