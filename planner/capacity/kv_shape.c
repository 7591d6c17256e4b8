/* SPDX-License-Identifier: Apache-2.0 */
/* See kv_shape.h. */
#include "planner/capacity/kv_shape.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { WIDEST = 100000000 };            /* of what a layer computes; products of widths stay ints below it */

/* The kind of layer that a letter of the pattern means; -1: none. */
static int letter(char c, const struct sh_kv_facts *f, struct sh_kv_layer *out)
{
    static const char letters[] = "GLCSM*-EIHB.PQ";
    static const struct { uint8_t mix, feed; } kinds[] = {
        {SH_MIX_FULL, SH_FEED_PLAIN}, {SH_MIX_WINDOW, SH_FEED_PLAIN}, {SH_MIX_CHUNK, SH_FEED_PLAIN},
        {SH_MIX_STATE, SH_FEED_PLAIN}, {SH_MIX_STATE, SH_FEED_NONE}, {SH_MIX_FULL, SH_FEED_NONE},
        {SH_MIX_NONE, SH_FEED_PLAIN}, {SH_MIX_NONE, SH_FEED_EXPERTS}, {SH_MIX_INDEXED, SH_FEED_PLAIN},
        {SH_MIX_FULL, SH_FEED_PLAIN}, {SH_MIX_BLOCKS, SH_FEED_PLAIN}, {SH_MIX_NONE, SH_FEED_NONE},
        {SH_MIX_POOLED, SH_FEED_PLAIN}, {SH_MIX_POOLED, SH_FEED_PLAIN}};
    const char *at = c ? strchr(letters, c) : NULL;
    if (!at)
        return -1;
    *out = (struct sh_kv_layer){.mix = kinds[at - letters].mix, .feed = kinds[at - letters].feed};
    out->state = out->mix == SH_MIX_STATE || c == 'H';
    if (out->mix == SH_MIX_FULL && f->latent)
        out->mix = SH_MIX_LATENT;
    if (out->mix == SH_MIX_POOLED) {
        out->indexed = c == 'P';
        out->pool = c == 'P' ? f->pool : f->wide_pool;
    }
    return 0;
}

/* Heads and widths: of its kind, or its own. */
static int size_layer(const struct sh_kv_shape *s, int layer, struct sh_err *e)
{
    const struct sh_kv_facts *f = &s->f;
    struct sh_kv_layer *l = &s->layer[layer];
    int is_full = l->mix == SH_MIX_FULL;
    l->heads = l->mix == SH_MIX_WINDOW && f->window_heads ? f->window_heads : f->heads;
    l->kv_heads = is_full && f->global_kv_heads ? f->global_kv_heads : f->kv_heads;
    l->width = is_full && f->global_head_dim ? f->global_head_dim : s->d_k;
    l->values = f->v_dim ? f->v_dim : l->width;
    l->ffn = l->borrows && f->late_ffn ? f->late_ffn : f->ffn;
    l->rope = f->rope_dim;
    if (f->n_format)
        memcpy(l->format, f->format[layer], sizeof l->format);
    if (layer < f->n_own) {
        const struct sh_layer_facts *own = &f->own[layer];
        l->heads = own->heads ? own->heads : l->heads;
        l->kv_heads = own->kv_heads ? own->kv_heads : l->kv_heads;
        l->ffn = own->ffn ? own->ffn : l->ffn;
        l->products = own->products;
        l->state_more = own->state_more;
        l->rope = own->still ? 0 : l->rope;
    }
    if (l->heads % l->kv_heads)
        return sh_fail(e, "%s: layer %d: found %d heads and %d KV heads, expected a multiple", f->name, layer, l->heads,
                       l->kv_heads);
    return (double)l->heads * l->width > WIDEST
               ? sh_fail(e, "%s: layer %d: found %d heads of %d, expected a product of at most %d", f->name, layer,
                         l->heads, l->width, WIDEST) : 0;
}

static int fill_layers(struct sh_kv_shape *s, struct sh_err *e)
{
    const struct sh_kv_facts *f = &s->f;
    size_t n = strlen(f->pattern), n_feed = strlen(f->feeds);
    for (int i = 0; i < f->layers; i++) {
        struct sh_kv_layer *l = &s->layer[i];
        if (letter(f->pattern[(size_t)i % n], f, l))
            return sh_fail(e, "%s: pattern: found '%c', expected letters of G L C S M * - E I H B P Q .", f->name,
                           f->pattern[(size_t)i % n]);
        l->borrows = i >= f->layers - f->borrowed;
        l->again = i >= f->again_from && i < f->again_from + f->again;
        if (n_feed)
            l->feed = f->feeds[(size_t)i % n_feed] == 'E' ? SH_FEED_EXPERTS : SH_FEED_PLAIN;
        else if (l->feed == SH_FEED_PLAIN && f->experts && !strchr(f->pattern, 'E') && i >= f->dense_first &&
            i % f->moe_every == f->moe_offset)
            l->feed = SH_FEED_EXPERTS;
        if ((l->mix == SH_MIX_WINDOW || l->mix == SH_MIX_CHUNK || l->mix == SH_MIX_POOLED) && !f->window)
            return sh_fail(e, "%s: layer %d has a window, but window is missing", f->name, i);
        if (l->mix == SH_MIX_INDEXED && (!f->latent || !f->index_dim || !f->index_heads))
            return sh_fail(e, "%s: layer %d has an index, but latent, index_dim or index_heads is missing", f->name, i);
        if (l->mix == SH_MIX_POOLED && (!l->pool || !f->o_rank))
            return sh_fail(e, "%s: layer %d has entries for several tokens, but %s or o_rank is missing", f->name, i,
                           l->indexed ? "pool" : "wide_pool");
        if ((l->mix == SH_MIX_BLOCKS || l->indexed) && (!f->index_dim || !f->index_heads))
            return sh_fail(e, "%s: layer %d has an index, but index_dim or index_heads is missing", f->name, i);
        if (l->feed == SH_FEED_EXPERTS && !f->experts)
            return sh_fail(e, "%s: layer %d has experts, but experts is missing", f->name, i);
        if (l->state && !f->ssm)
            return sh_fail(e, "%s: layer %d has a state, but ssm is missing", f->name, i);
        if (l->feed == SH_FEED_PLAIN && !f->ffn)
            return sh_fail(e, "%s: layer %d has a plain feed-forward block, but ffn is missing", f->name, i);
        if (size_layer(s, i, e))
            return -1;
    }
    return 0;
}

/* Linear attention, with the delta rule or without it. */
static int has_keys(const struct sh_kv_facts *f)
{
    return f->ssm == 3 || f->ssm == 5;
}

/* Whose width is that of its heads, or blocks. */
static int has_heads(const struct sh_kv_facts *f)
{
    return f->ssm == 2 || f->ssm == 6 || has_keys(f);
}

int sh_kv_shape_conv(const struct sh_kv_facts *f)
{
    if (f->ssm == 2)
        return f->ssm_inner + 2 * f->ssm_groups * f->ssm_state;
    if (has_keys(f))
        return 2 * f->ssm_key_heads * f->ssm_key_dim + f->ssm_inner;
    return f->ssm_inner;
}

/* The first missing key of those that the kinds of layers need; NULL: none is missing. */
static const char *missing(const struct sh_kv_facts *f)
{
    const struct { int is_needed, value; const char *key; } keys[] = {
        {1, f->layers, "layers"}, {1, f->hidden, "hidden"}, {1, f->heads, "heads"}, {1, f->vocab, "vocab"},
        {f->experts, f->used, "used"}, {f->experts, f->expert_ffn, "expert_ffn"},
        {f->o_rank, f->o_groups, "o_groups"}, {f->o_rank, f->q_latent, "q_latent"},
        {f->latent, f->nope_dim, "nope_dim"}, {f->latent, f->v_dim, "v_dim"},
        {f->ssm, f->ssm_conv, "ssm_conv"}, {f->ssm == 1 || f->ssm == 4, f->ssm_inner, "ssm_inner"},
        {f->ssm == 1, f->ssm_state, "ssm_state"}, {f->ssm == 1, f->ssm_rank, "ssm_rank"},
        {has_heads(f), f->ssm_heads, "ssm_heads"},
        {has_heads(f), f->ssm_head_dim, "ssm_head_dim"},
        {f->ssm == 2, f->ssm_state, "ssm_state"}, {f->ssm == 2, f->ssm_groups, "ssm_groups"},
        {has_keys(f), f->ssm_key_heads, "ssm_key_heads"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].is_needed && !keys[i].value)
            return keys[i].key;
    return NULL;
}

/* Widths that are products of two facts. */
static int check_widths(const struct sh_kv_facts *f, struct sh_err *e)
{
    const struct { const char *what; double width; } widths[] = {
        {"heads of head_dim", (double)f->heads * f->head_dim},
        {"window_heads of head_dim",
         (double)f->window_heads * (f->head_dim ? f->head_dim : f->hidden / f->heads)},
        {"heads of global_head_dim", (double)f->heads * f->global_head_dim},
        {"heads of nope_dim, rope_dim and v_dim", (double)f->heads * ((double)f->nope_dim + f->rope_dim + f->v_dim)},
        {"index_heads of index_dim", (double)f->index_heads * f->index_dim},
        {"o_groups of o_rank", (double)f->o_groups * f->o_rank},
        {"pool of head_dim", 2.0 * (f->pool + f->wide_pool) * (f->head_dim ? f->head_dim : f->hidden / f->heads)},
        {"pool of index_dim", 2.0 * f->pool * f->index_dim},
        {"ssm_heads of ssm_head_dim", (double)f->ssm_heads * f->ssm_head_dim},
        {"ssm_key_heads of ssm_key_dim", 2.0 * f->ssm_key_heads * f->ssm_key_dim},
        {"ssm_heads of ssm_key_dim", (double)f->ssm_heads * f->ssm_key_dim},
        {"ssm_groups of ssm_state", 2.0 * f->ssm_groups * f->ssm_state},
        {"ssm_inner of ssm_state", (double)f->ssm_inner * f->ssm_state / 8},
        {"ssm_conv of what passes it", ((double)f->ssm_inner + (double)f->ssm_heads * f->ssm_head_dim +
                                        2.0 * f->ssm_key_heads * f->ssm_key_dim +
                                        2.0 * f->ssm_groups * f->ssm_state) * f->ssm_conv / 8}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].width > WIDEST)
            return sh_fail(e, "%s: %s would be %g wide, expected at most %d", f->name, widths[i].what, widths[i].width,
                           WIDEST);
    return 0;
}

static int complete(struct sh_kv_facts *f, struct sh_err *e)
{
    const char *key = missing(f);
    if (key)
        return sh_fail(e, "%s: %s is missing", f->name, key);
    if (has_keys(f) && !f->ssm_key_dim)
        f->ssm_key_dim = f->ssm_head_dim;
    if (check_widths(f, e))
        return -1;
    if (!f->head_dim && !f->latent && f->hidden % f->heads)
        return sh_fail(e, "%s: hidden is %d, expected a multiple of heads, which is %d", f->name, f->hidden, f->heads);
    f->kv_heads = f->kv_heads ? f->kv_heads : f->heads;
    if (f->heads % f->kv_heads)
        return sh_fail(e, "%s: kv_heads is %d, expected a divisor of heads, which is %d", f->name, f->kv_heads,
                       f->heads);
    if (f->global_kv_heads && f->heads % f->global_kv_heads)
        return sh_fail(e, "%s: global_kv_heads is %d, expected a divisor of heads, which is %d", f->name,
                       f->global_kv_heads, f->heads);
    if (f->o_rank && (f->heads % f->o_groups || f->kv_heads != 1))
        return sh_fail(e, "%s: o_groups is %d and kv_heads is %d, expected a divisor of heads, which is %d, and 1",
                       f->name, f->o_groups, f->kv_heads, f->heads);
    if (f->window_heads % f->kv_heads)
        return sh_fail(e, "%s: window_heads is %d, expected a multiple of kv_heads, which is %d", f->name,
                       f->window_heads, f->kv_heads);
    f->head_dim = f->latent ? f->nope_dim + f->rope_dim : f->head_dim ? f->head_dim : f->hidden / f->heads;
    f->embed_width = f->embed_width ? f->embed_width : f->hidden;
    if (f->used > f->experts)
        return sh_fail(e, "%s: used is %d, expected at most %d, the number of experts", f->name, f->used, f->experts);
    if (f->ssm == 6)
        f->ssm_state = 1;
    if (has_heads(f))
        f->ssm_inner = f->ssm_heads * f->ssm_head_dim;
    return 0;
}

/* Mamba keeps inner x state, Mamba-2 the same by heads, linear attention a matrix key x value for each head, the RG-LRU
 * a number for each channel; all of them, and short convolutions alone, the last ssm_conv - 1 inputs of the
 * convolution. */
static uint64_t state_elements(const struct sh_kv_facts *f)
{
    uint64_t inner = (uint64_t)f->ssm_inner, conv = (uint64_t)sh_kv_shape_conv(f) * (uint64_t)(f->ssm_conv - 1);
    return inner * (uint64_t)(has_keys(f) ? f->ssm_key_dim : f->ssm_state) + conv;
}

/* Bounds that no model comes near, and that keep products within 64 bits. */
static int check_size(const struct sh_kv_shape *s, struct sh_err *e)
{
    const struct sh_kv_facts *f = &s->f;
    const struct sh_kv_layer most = sh_kv_shape_most(s);
    double heads = most.heads, width = f->hidden, wide = most.width > most.values ? most.width : most.values;
    double cell = 2.0 * most.kv_heads * wide + f->latent + f->index_dim;
    double layer = width * (heads * wide * 4 + (double)most.ffn * 3 + 2 * width) +
                   (double)f->experts * f->expert_ffn * width * 3 + width * f->shared_ffn * 3.0 +
                   (double)f->index_heads * f->index_dim * (f->q_latent + width) +
                   (double)f->ssm_inner * (width * 4 + f->ssm_state + 2.0 * f->ssm_head_dim) +
                   (double)f->ssm_own_decays * f->ssm_heads * f->ssm_key_dim * width +
                   f->q_latent * (heads * wide + width) + f->o_rank * (f->o_groups * width + heads * wide) +
                   f->latent_ffn * (2 * width + (double)f->experts * f->expert_ffn * 3) + (double)f->layer_more +
                   (double)f->vectors_more;
    if (cell * f->layers * 8 > 0x1p32)
        return sh_fail(e, "%s: a token would take %g cached numbers, expected fewer than 2^29", f->name,
                       cell * f->layers);
    if ((layer * f->layers + 2.0 * width * f->vocab + width * f->positions) * 8 > 0x1p61)
        return sh_fail(e, "%s: it would have over 10^17 parameters", f->name);
    if ((double)s->state > 0x1p40)
        return sh_fail(e, "%s: a layer's state would hold %g numbers, expected fewer than 2^40", f->name,
                       (double)s->state);
    return 0;
}

int sh_kv_shape_build(const struct sh_kv_facts *f, struct sh_kv_shape *out, struct sh_err *e)
{
    struct sh_kv_shape s = {.f = *f};
    if (complete(&s.f, e))
        return -1;
    if (s.f.layers > SH_SHAPE_LAYERS || !s.f.pattern[0])
        return sh_fail(e, "%s: found %d layers with the pattern \"%s\", expected at most %d with a pattern", s.f.name,
                       s.f.layers, s.f.pattern, SH_SHAPE_LAYERS);
    s.d_k = s.f.head_dim;
    s.d_v = s.f.v_dim ? s.f.v_dim : s.f.head_dim;
    s.state = s.f.ssm ? state_elements(&s.f) : 0;
    s.layer = xcalloc((size_t)s.f.layers, sizeof *s.layer);
    if (fill_layers(&s, e) || check_size(&s, e)) {
        sh_kv_shape_clear(&s);
        return -1;
    }
    *out = s;
    return 0;
}

void sh_kv_shape_clear(struct sh_kv_shape *s)
{
    if (!s)
        return;
    free(s->layer);
    free(s->stored);
    s->layer = NULL;
    s->stored = NULL;
}

int sh_kv_shape_alike(const struct sh_kv_shape *s, int *first, int last, struct sh_kv_alike out[SH_MOST_ALIKE])
{
    int n = 0, i = *first;
    for (; i < last; i++) {
        int k = 0;
        while (k < n && memcmp(&s->layer[out[k].layer], &s->layer[i], sizeof *s->layer))
            k++;
        if (k == SH_MOST_ALIKE)
            break;
        if (k == n)
            out[n++] = (struct sh_kv_alike){.layer = i};
        out[k].n++;
    }
    *first = i;
    return n;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

struct sh_kv_layer sh_kv_shape_most(const struct sh_kv_shape *s)
{
    struct sh_kv_layer most = {0};
    for (int i = 0; i < s->f.layers; i++) {
        const struct sh_kv_layer *l = &s->layer[i];
        most.heads = larger(most.heads, l->heads);
        most.kv_heads = larger(most.kv_heads, l->kv_heads);
        most.width = larger(most.width, l->width);
        most.values = larger(most.values, l->values);
        most.ffn = larger(most.ffn, l->ffn);
    }
    return most;
}

int sh_kv_shape_states(const struct sh_kv_shape *s)
{
    int n = 0;
    for (int i = 0; i < s->f.layers; i++)
        n += s->layer[i].state;
    return n;
}

int sh_kv_shape_count(const struct sh_kv_shape *s, enum sh_mix mix)
{
    int n = 0;
    for (int i = 0; i < s->f.layers; i++)
        n += s->layer[i].mix == mix;
    return n;
}
