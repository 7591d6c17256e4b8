/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/capacity/lora.h"

#include <math.h>

static uint64_t part(int n, int tp)
{
    return (uint64_t)((n + tp - 1) / tp);
}

/* A gated block has two input matrices. */
static uint64_t block(const struct sh_kv_facts *f, int width, int tp)
{
    uint64_t hidden = (uint64_t)f->hidden, here = part(width, tp);
    return width ? (f->gated ? 3 : 2) * (hidden + here) : 0;
}

static uint64_t attention(const struct sh_kv_facts *f, const struct sh_kv_layer *l, int tp)
{
    uint64_t hidden = (uint64_t)f->hidden, width = (uint64_t)l->width, n = 0;
    uint64_t values = (uint64_t)l->values, heads = part(l->heads, tp);
    uint64_t out = heads * values, q = heads * width, kv = part(l->kv_heads, tp);
    n += hidden + (f->query_gate ? 2 : 1) * q;
    if (!l->borrows)
        n += hidden + kv * width + (f->keys_are_values && l->mix == SH_MIX_FULL ? 0 : hidden + kv * values);
    return n + out + hidden;
}

uint64_t sh_lora_parameters(const struct sh_kv_shape *s, int first, int last, const struct sh_lora *l, int tp)
{
    const struct sh_kv_facts *f = &s->f;
    uint64_t n = 0;
    for (int i = first; i < last && l->adapters; i++) {
        const struct sh_kv_layer *at = &s->layer[i];
        if (at->mix != SH_MIX_NONE)
            n += attention(f, at, tp);
        if (at->feed == SH_FEED_PLAIN)
            n += block(f, at->ffn, tp);
        else if (at->feed == SH_FEED_EXPERTS)
            n += block(f, f->shared_ffn, tp);
    }
    return n * l->rank;
}

double sh_lora_touched(double adapters, double sequences)
{
    return adapters > 0 ? adapters * (1 - pow(1 - 1 / adapters, sequences)) : 0;
}

int sh_lora_suits(const struct sh_kv_shape *s, struct sh_err *e)
{
    int latent = sh_kv_shape_count(s, SH_MIX_LATENT) + sh_kv_shape_count(s, SH_MIX_INDEXED);
    if (s->f.again)
        return sh_misused(e, "--lora: %s has layers that run several times, whose adapters are not counted", s->f.name);
    if (!latent && !s->f.o_rank && !sh_kv_shape_states(s))
        return 0;
    return sh_misused(e, "--lora: %s has layers with %s, whose adapters are not counted", s->f.name,
                      latent || s->f.o_rank ? "latent attention" : "a recurrent state");
}
