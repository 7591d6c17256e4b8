/* SPDX-License-Identifier: Apache-2.0 */
/* See kv_rule.h. */
#include "planner/capacity/kv_rule.h"

#include <math.h>

enum { LLAMA_CELLS = 256 };             /* llama.cpp pads its caches to multiples of it */

uint64_t sh_kv_mul(uint64_t a, uint64_t b)
{
    return a && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

uint64_t sh_kv_add(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t ceil_to(uint64_t n, uint64_t step)
{
    return (n + step - 1) / step * step;
}

/* ceil(length * share). A share such as 0.2 is not exact in binary: a number within 2^-40 of a whole one is meant to be
 * whole, so that 0.2 of 2050 is 410. */
static uint64_t share_of(uint64_t length, double share)
{
    double exact = (double)length * share, near = nearbyint(exact);
    return (uint64_t)(fabs(exact - near) <= exact * 0x1p-40 ? near : ceil(exact));
}

uint64_t sh_kv_budget(const struct sh_kv_rule *r, int layer, uint64_t length)
{
    switch (r->budget) {
    case SH_BUDGET_SHARE: return share_of(length, r->share);
    case SH_BUDGET_TOKENS: return r->tokens;
    case SH_BUDGET_LAYERS: return r->layers[layer];
    case SH_BUDGET_PLAN: return r->planned.tokens(&r->planned, layer, length);
    case SH_BUDGET_NONE: break;
    }
    return UINT64_MAX;
}

/* What a window costs, as charged; in tokens that are not yet whole pages. */
static uint64_t windowed(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int mix, uint64_t length)
{
    uint64_t window = (uint64_t)s->f.window;
    switch (r->windows) {
    case SH_WINDOWS_MODEL: return least(length, window);
    case SH_WINDOWS_IGNORE: break;
    case SH_WINDOWS_VLLM:
        if (mix == SH_MIX_CHUNK)
            return least(length, window + r->in_flight);
        return ceil_to(least(length, window - 1 + r->in_flight), r->page) + r->page;
    case SH_WINDOWS_LLAMA: return least(length, ceil_to(window + r->in_flight, LLAMA_CELLS));
    }
    return length;
}

uint64_t sh_kv_shared(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length)
{
    int mix = s->layer[layer].mix;
    int all = mix == SH_MIX_FULL || mix == SH_MIX_LATENT || mix == SH_MIX_INDEXED || mix == SH_MIX_BLOCKS ||
              mix == SH_MIX_POOLED;
    return all ? least(r->prefix, length) / r->page * r->page : 0;
}

uint64_t sh_kv_kept(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length)
{
    int mix = s->layer[layer].mix;
    if (mix == SH_MIX_NONE || mix == SH_MIX_STATE)
        return 0;
    uint64_t own = length - sh_kv_shared(s, r, layer, length), kept = own;
    if (mix == SH_MIX_WINDOW || mix == SH_MIX_CHUNK)
        kept = windowed(s, r, mix, length);
    if (r->budget != SH_BUDGET_NONE)
        kept = least(kept, sh_kv_add(sh_kv_budget(r, layer, own), r->headroom));
    return kept;
}

uint64_t sh_kv_held(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length)
{
    return ceil_to(sh_kv_kept(s, r, layer, length), r->page);
}

uint64_t sh_kv_index_cell(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer)
{
    const struct sh_kv_layer *l = &s->layer[layer];
    uint64_t n = (uint64_t)s->f.index_dim;
    if (l->mix == SH_MIX_BLOCKS)
        return sh_kv_type_bytes(&r->k, n);
    uint64_t pool = l->indexed ? (uint64_t)l->pool : s->f.index_pool ? (uint64_t)s->f.index_pool : 1;
    uint64_t key = n + 4 * ((n + 127) / 128);
    return l->mix == SH_MIX_INDEXED || l->indexed ? (key + pool - 1) / pool : 0;
}

/* Of one KV head. */
static uint64_t value_bytes(const struct sh_kv_shape *s, const struct sh_kv_rule *r, const struct sh_kv_layer *l)
{
    return s->f.cached_once ? 0 : sh_kv_type_bytes(&r->v, (uint64_t)l->values);
}

uint64_t sh_kv_window(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length)
{
    const struct sh_kv_layer *l = &s->layer[layer];
    if (l->mix != SH_MIX_POOLED)
        return 0;
    return sh_kv_mul(ceil_to(windowed(s, r, SH_MIX_WINDOW, length), r->page),
                     sh_kv_type_bytes(&r->k, (uint64_t)l->width) + value_bytes(s, r, l) + r->state);
}

uint64_t sh_kv_cell(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, int tp)
{
    const struct sh_kv_facts *f = &s->f;
    const struct sh_kv_layer *l = &s->layer[layer];
    uint64_t heads = ((uint64_t)l->kv_heads + (uint64_t)tp - 1) / (uint64_t)tp;
    if (l->borrows)                     /* the lender has them */
        return 0;
    switch ((enum sh_mix)l->mix) {
    case SH_MIX_FULL:
    case SH_MIX_WINDOW:
    case SH_MIX_CHUNK:
    case SH_MIX_BLOCKS:
        return heads * (sh_kv_type_bytes(&r->k, (uint64_t)l->width) + value_bytes(s, r, l) + r->state) +
               sh_kv_index_cell(s, r, layer);
    case SH_MIX_POOLED:
        return (sh_kv_type_bytes(&r->k, (uint64_t)l->width) + value_bytes(s, r, l) + r->state + (uint64_t)l->pool - 1) /
               (uint64_t)l->pool + sh_kv_index_cell(s, r, layer);
    case SH_MIX_LATENT:
    case SH_MIX_INDEXED:
        return sh_kv_type_bytes(&r->k, (uint64_t)f->latent) + sh_kv_type_bytes(&r->k, (uint64_t)l->rope) +
               sh_kv_index_cell(s, r, layer) + r->state;
    default: return 0;
    }
}

/* Add what `n` layers like this one take. */
static void add_layers(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t n, int tp,
                       uint64_t length, struct sh_kv_bytes *b)
{
    int mix = s->layer[layer].mix;
    uint64_t cell = sh_kv_cell(s, r, layer, tp), number = r->k.bits == 32 ? 4 : 2;     /* states are not quantised */
    uint64_t held = sh_kv_held(s, r, layer, length), all = sh_kv_mul(cell, held);
    if (r->k.residual && (mix == SH_MIX_FULL || mix == SH_MIX_WINDOW || mix == SH_MIX_CHUNK ||
                          mix == SH_MIX_BLOCKS)) {
        const struct sh_kv_layer *l = &s->layer[layer];
        uint64_t width = (uint64_t)l->width;
        uint64_t heads = ((uint64_t)l->kv_heads + (uint64_t)tp - 1) / (uint64_t)tp;
        all = sh_kv_mul(heads, sh_kv_mul(held, value_bytes(s, r, l) + r->state));
        all = sh_kv_add(all, sh_kv_mul(heads, sh_kv_type_channels(&r->k, held, width)));
        all = sh_kv_add(all, sh_kv_mul(sh_kv_index_cell(s, r, layer), held));
    }
    all = sh_kv_add(all, sh_kv_window(s, r, layer, length));
    b->token += n * cell;
    b->sequence = sh_kv_add(b->sequence, sh_kv_mul(n, all));
    b->prefix = sh_kv_add(b->prefix, sh_kv_mul(n * cell, sh_kv_shared(s, r, layer, length)));
    if (s->layer[layer].state)
        b->states += n * ((s->state + (uint64_t)tp - 1) / (uint64_t)tp + (uint64_t)s->layer[layer].state_more) * number;
}

struct sh_kv_bytes sh_kv_bytes(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int first, int last, int tp,
                               uint64_t length)
{
    struct sh_kv_bytes b = {0, 0, 0, 0};
    int each = r->budget == SH_BUDGET_LAYERS || r->budget == SH_BUDGET_PLAN;
    for (int i = first; i < last;) {
        struct sh_kv_alike alike[SH_MOST_ALIKE] = {{.layer = i, .n = 1}};
        int groups = each ? i++, 1 : sh_kv_shape_alike(s, &i, last, alike);
        for (int k = 0; k < groups; k++)
            if (!s->layer[alike[k].layer].borrows)
                add_layers(s, r, alike[k].layer, (uint64_t)alike[k].n, tp, length, &b);
    }
    b.sequence = sh_kv_add(b.sequence, b.states);
    return b;
}
