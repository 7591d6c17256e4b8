/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/arch.h"

#include <math.h>

#include "src/base/mem.h"

int sh_arch_window(const struct sh_arch *a, int layer)
{
    return a->whole[layer / 64] >> layer % 64 & 1 ? 0 : a->window;
}

void sh_arch_see_all(struct sh_arch *a, int layer)
{
    a->whole[layer / 64] |= (uint64_t)1 << layer % 64;
}

static const struct sh_layer_sizes *sizes_of(const struct sh_arch *a, int layer)
{
    static const struct sh_layer_sizes none = {0};
    return a->sizes && layer >= 0 && layer < a->n_layer ? &a->sizes[layer] : &none;
}

enum sh_block_kind sh_arch_attention_kind(const struct sh_arch *a, int layer)
{
    return sizes_of(a, layer)->attention;
}

enum sh_block_kind sh_arch_feed_kind(const struct sh_arch *a, int layer)
{
    return sizes_of(a, layer)->feed;
}

int sh_arch_attends(const struct sh_arch *a, int layer)
{
    if (sh_arch_attention_kind(a, layer))
        return 0;
    if (a->shared.n)
        return sh_arch_shares(a, layer);
    uint64_t linear = a->recurrent.next_to ? 0 : a->linear[layer / 64];
    return !((linear | a->feeds[layer / 64]) >> layer % 64 & 1);
}

enum sh_norm_place sh_arch_norm_place(const struct sh_arch *a, int layer)
{
    if (a->norm_place != SH_NORM_BY_KIND)
        return a->norm_place;
    return sh_arch_attends(a, layer) ? SH_NORM_OUT : SH_NORM_PRE;
}

int sh_arch_recurs(const struct sh_arch *a, int layer)
{
    return a->linear[layer / 64] >> layer % 64 & 1;
}

int sh_arch_feeds(const struct sh_arch *a, int layer)
{
    if (a->shared.n)
        return sh_arch_shares(a, layer);
    return !sh_arch_feed_kind(a, layer) && (!a->one_block || (a->feeds[layer / 64] >> layer % 64 & 1));
}

void sh_arch_make_feed(struct sh_arch *a, int layer)
{
    a->feeds[layer / 64] |= (uint64_t)1 << layer % 64;
}

void sh_arch_make_linear(struct sh_arch *a, int layer)
{
    a->linear[layer / 64] |= (uint64_t)1 << layer % 64;
}

/* 0: with a window, 1: without. */
static int kind_of(const struct sh_arch *a, int layer)
{
    return !sh_arch_window(a, layer);
}

int sh_arch_query_heads(const struct sh_arch *a, int layer)
{
    int own = sizes_of(a, layer)->n_head;
    return !sh_arch_attends(a, layer) ? 0 : own ? own : a->n_head;
}

int sh_arch_kv_heads(const struct sh_arch *a, int layer)
{
    int own = sizes_of(a, layer)->n_kv_head;
    return !sh_arch_attends(a, layer) ? 0 : own ? own : a->n_kv_head;
}

int sh_arch_widest_group(const struct sh_arch *a)
{
    int most = a->sizes ? 1 : a->n_head / a->n_kv_head;
    for (int layer = 0; layer < a->n_layer && a->sizes; layer++)
        if (sh_arch_attends(a, layer)) {
            int group = sh_arch_query_heads(a, layer) / sh_arch_kv_heads(a, layer);
            most = group > most ? group : most;
        }
    return most;
}

int sh_arch_d_head(const struct sh_arch *a, int layer)
{
    int own = sizes_of(a, layer)->d_head;
    return own ? own : a->d_head;
}

int sh_arch_d_ff(const struct sh_arch *a, int layer)
{
    int own = sizes_of(a, layer)->d_ff;
    return own ? own : a->d_ff;
}

int sh_arch_n_rot(const struct sh_arch *a, int layer)
{
    return a->local_n_rot && sh_arch_window(a, layer) ? a->local_n_rot : a->n_rot;
}

struct sh_latent sh_arch_latent(const struct sh_arch *a, int layer)
{
    struct sh_latent t = a->latent;
    if (t.rank && sizes_of(a, layer)->d_head == t.rank) {
        t.d_nope += t.d_rope;
        t.d_rope = 0;
    }
    return t;
}

size_t sh_arch_kept(const struct sh_arch *a, int layer)
{
    int d = a->d_key ? a->d_key : sh_arch_d_head(a, layer), values = a->latent.rank ? 0 : a->d_value ? a->d_value : d;
    return sh_arch_borrows(a, layer) ? 0 : (size_t)sh_arch_kv_heads(a, layer) * (size_t)(d + values);
}

int sh_arch_widths_differ(const struct sh_arch *a)
{
    int width = 0, differ = 0;
    for (int layer = 0; layer < a->n_layer && a->sizes; layer++)
        if (sh_arch_attends(a, layer)) {
            differ |= width && sh_arch_d_head(a, layer) != width;
            width = sh_arch_d_head(a, layer);
        }
    return differ;
}

int sh_arch_borrows(const struct sh_arch *a, int layer)
{
    return a->borrows_from && layer >= a->borrows_from;
}

int sh_arch_lends(const struct sh_arch *a, int layer)
{
    if (!a->borrows_from || layer >= a->borrows_from)
        return 0;
    for (int later = layer + 1; later < a->borrows_from; later++)
        if (kind_of(a, later) == kind_of(a, layer))
            return 0;
    return 1;
}

const struct sh_arch *sh_arch_at(const struct sh_arch *a, int layer, struct sh_arch *copy)
{
    const struct sh_ngram_layer *ngrams = layer < 0 ? NULL : sh_arch_ngrams(a, layer);
    if (layer < 0 || (!a->sizes && !ngrams))
        return a;
    *copy = *a;
    copy->ngrams.rows = ngrams ? ngrams->rows : 0;
    copy->n_head = sh_arch_query_heads(a, layer);
    copy->n_kv_head = sh_arch_kv_heads(a, layer);
    copy->d_head = sh_arch_d_head(a, layer);
    copy->d_ff = sh_arch_d_ff(a, layer);
    copy->latent = sh_arch_latent(a, layer);
    return copy;
}

/* Numbers of the keys that layers of a kind borrow: they are alike. */
static size_t lent(const struct sh_arch *a, int kind)
{
    int layer = 0;
    while (layer < a->borrows_from - 1 && kind_of(a, layer) != kind)
        layer++;
    return a->borrows_from ? (size_t)sh_arch_kv_heads(a, layer) * (size_t)sh_arch_d_head(a, layer) : 0;
}

size_t sh_arch_own_at(const struct sh_arch *a, int layer)
{
    int n = a->streams.n > 1 ? a->streams.n : 1;
    return (size_t)n * (size_t)a->d_model + (size_t)layer * (size_t)a->streams.d_own;
}

size_t sh_arch_lent_at(const struct sh_arch *a, int layer)
{
    return sh_arch_own_at(a, a->n_layer) + (kind_of(a, layer) ? 2 * lent(a, 0) : 0);
}

size_t sh_arch_late_at(const struct sh_arch *a)
{
    return sh_arch_own_at(a, a->n_layer) + 2 * lent(a, 0) + 2 * lent(a, 1);
}

size_t sh_arch_token_at(const struct sh_arch *a)
{
    return sh_arch_late_at(a) + (a->mix.late || a->shared.n || a->loop.n ? (size_t)a->d_model : 0);
}

size_t sh_arch_row(const struct sh_arch *a)
{
    return sh_arch_token_at(a) + (a->ngrams.n_layer ? 1 : 0);
}

const struct sh_ngram_layer *sh_arch_ngrams(const struct sh_arch *a, int layer)
{
    for (int i = 0; i < a->ngrams.n_layer; i++)
        if (a->ngrams.at[i].layer == layer)
            return &a->ngrams.at[i];
    return NULL;
}

int sh_arch_shares(const struct sh_arch *a, int layer)
{
    return layer >= 0 && layer < a->n_layer && a->shared.at[layer / 64] >> layer % 64 & 1;
}

void sh_arch_make_shared(struct sh_arch *a, int layer)
{
    a->shared.at[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_arch_first_pass(const struct sh_arch *a, int layer)
{
    const struct sh_loop *o = &a->loop;
    int within = o->n && layer >= o->first && layer < o->first + o->n * o->times;
    return within ? o->first + (layer - o->first) % o->n : layer;
}

int sh_arch_number(const struct sh_arch *a, int layer)
{
    int past = a->loop.n && layer >= a->loop.first + a->loop.n * a->loop.times;
    int number = past ? layer - a->loop.n * (a->loop.times - 1) : sh_arch_first_pass(a, layer);
    for (int i = 0; i <= number && i < SH_MOST_LAYERS; i++)
        if (i % 64 == 0 && !a->left_out[i / 64])
            i += 63;
        else
            number += (int)(a->left_out[i / 64] >> i % 64 & 1);
    return number;
}

int sh_arch_leave_out(struct sh_arch *a, int number)
{
    uint64_t bit = (uint64_t)1 << number % 64;
    int is_new = !(a->left_out[number / 64] & bit);
    a->left_out[number / 64] |= bit;
    return is_new;
}

int sh_arch_block_number(const struct sh_arch *a, int layer)
{
    int n = 0;
    for (int i = 0; i < layer; i++)
        n += sh_arch_shares(a, i);
    return n;
}

int sh_arch_block_layer(const struct sh_arch *a, int layer)
{
    int shares = a->shared.n && sh_arch_shares(a, layer);
    int number = shares ? sh_arch_block_number(a, layer) % a->shared.n : 0;
    for (int i = 0; i < layer && shares; i++)
        if (sh_arch_shares(a, i) && !number--)
            return i;
    return layer;
}

int sh_arch_cuts(const struct sh_arch *a, int layer)
{
    return a->cut > 0 && a->cuts[layer / 64] >> layer % 64 & 1;
}

void sh_arch_make_cut(struct sh_arch *a, int layer)
{
    a->cuts[layer / 64] |= (uint64_t)1 << layer % 64;
}

const struct sh_limits *sh_arch_limits(const struct sh_arch *a, int layer, enum sh_limited what)
{
    return a->limits[what].at[layer / 64] >> layer % 64 & 1 ? &a->limits[what] : NULL;
}

void sh_arch_limit(struct sh_arch *a, int layer, enum sh_limited what)
{
    a->limits[what].at[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_recurrent_channels(const struct sh_recurrent *r)
{
    return (r->rank ? 0 : 2 * r->n_k * r->d_k) + r->n_v * r->d_v;
}

size_t sh_recurrent_state(const struct sh_recurrent *r)
{
    return r->n_v ? (size_t)(r->kernel - 1) * (size_t)sh_recurrent_channels(r) +
                    (size_t)r->n_v * (size_t)r->d_k * (size_t)r->d_v : 0;
}

size_t sh_arch_state(const struct sh_arch *a, int layer)
{
    const struct sh_ngrams *g = &a->ngrams;
    size_t n = sh_arch_ngrams(a, layer) ? (size_t)(g->kernel - 1) * (size_t)g->n * (size_t)a->streams.n *
                                              (size_t)a->d_model + (size_t)(g->n - 1) : 0;
    return n + (sh_arch_recurs(a, layer) ? sh_recurrent_state(&a->recurrent) : 0);
}

size_t sh_arch_most_state(const struct sh_arch *a)
{
    return a->ngrams.n_layer ? sh_arch_state(a, a->ngrams.at[0].layer) : sh_recurrent_state(&a->recurrent);
}

int sh_arch_turns(const struct sh_arch *a, int layer)
{
    return a->pos == SH_POS_ROTARY && !(a->still[layer / 64] >> layer % 64 & 1);
}

void sh_arch_keep_still(struct sh_arch *a, int layer)
{
    a->still[layer / 64] |= (uint64_t)1 << layer % 64;
}

void sh_arch_turn_apart(struct sh_arch *a, int layer)
{
    a->other_rope[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_arch_tempers(const struct sh_arch *a, int layer)
{
    return a->temper > 0 && !a->tempers_heads && !(a->flags & SH_TEMPER_STILL && sh_arch_turns(a, layer));
}

float sh_arch_added_by(const struct sh_arch *a, enum sh_adding what)
{
    return a->residual_scale * (a->own_scale[what] > 0 ? a->own_scale[what] : 1);
}

int sh_arch_scales(const struct sh_arch *a)
{
    int scales = 0;
    for (int what = 0; what < SH_N_ADDING; what++) {
        float by = sh_arch_added_by(a, (enum sh_adding)what);
        scales |= by < 1 || by > 1;
    }
    return scales;
}

int sh_arch_mixes_f32(const struct sh_arch *a)
{
    return !a->latent.rank && ((a->d_key && !a->has_key_bias) || a->flags & (SH_HAS_SUB_NORM | SH_ATTENTION_GATE));
}

int sh_arch_has_sub(const struct sh_arch *a)
{
    return sh_arch_mixes_f32(a) || a->latent.rank || a->d_value;
}

int sh_arch_predicts(const struct sh_arch *a, int token)
{
    return (!a->n_out || token < a->n_out) && (token < a->mute || token - a->mute >= a->n_mute);
}

unsigned sh_arch_flags(const struct sh_arch *a, int layer)
{
    int mixes = a->mix.n && sh_arch_feeds(a, layer) && !(a->mix.dense[layer / 64] >> layer % 64 & 1);
    unsigned flags = a->last_out_bias && layer < a->n_layer - 1 ? a->flags & ~(unsigned)SH_HAS_OUT_BIAS : a->flags;
    return flags | (mixes ? SH_EXPERT_LAYER : 0) | (mixes && a->mix.shared_width ? SH_SHARED_LAYER : 0);
}

void sh_arch_keep_dense(struct sh_arch *a, int layer)
{
    a->mix.dense[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_arch_widest_ff(const struct sh_arch *a)
{
    int most = a->d_ff > a->mix.width ? a->d_ff : a->mix.width;
    return most > a->mix.shared_width ? most : a->mix.shared_width;
}

float sh_arch_scale(const struct sh_arch *a, int layer)
{
    return a->flags & SH_SCALED_BY_LAYER ? a->scale / (float)(layer + 1) : a->scale;
}

const struct sh_rope *sh_arch_rope(const struct sh_arch *a, int layer)
{
    int apart = sh_arch_window(a, layer) || a->other_rope[layer / 64] >> layer % 64 & 1;
    return a->local_rope.base > 0 && apart ? &a->local_rope : &a->rope;
}

static int follows_length(const struct sh_rope *r)
{
    return r->kind == SH_ROPE_DYNAMIC || r->kind == SH_ROPE_LONG;
}

int sh_arch_follows_length(const struct sh_arch *a)
{
    return follows_length(&a->rope) || follows_length(&a->local_rope);
}

/* A geometric series for a power of two; the heads beyond take every other slope of the next one. */
float *sh_arch_slopes(const struct sh_arch *a)
{
    if (a->pos != SH_POS_ALIBI)
        return NULL;
    float *slopes = xcalloc((size_t)a->n_head, sizeof *slopes);
    int power = 1;
    while (power <= a->n_head / 2)
        power *= 2;
    for (int h = 0; h < a->n_head; h++)
        slopes[h] = (float)exp2(h < power ? -8.0 * (h + 1) / power : -4.0 * (2 * (h - power) + 1) / power);
    return slopes;
}

int sh_hyper_weights(const struct sh_streams *s)
{
    return s->rounds ? (2 + s->n) * s->n : 2 * s->n;
}
