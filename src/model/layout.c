/* SPDX-License-Identifier: Apache-2.0 */
/* See families/family.h: which parameters a layer has, and where each lies in its tensor. */
#include "src/model/families/family.h"

#include <string.h>

#include "src/base/mem.h"
#include "src/base/team.h"

static int ngram_size(const struct sh_ngrams *g, enum sh_dim dim)
{
    if (!g->n_layer)
        return dim == SH_DIM_NGRAM_PARTS;
    return dim == SH_DIM_NGRAM ? g->d : dim == SH_DIM_NGRAM_HEAD ? g->d / ((g->n - 1) * g->heads)
           : dim == SH_DIM_NGRAM_ROWS ? g->rows : dim == SH_DIM_NGRAM_PARTS ? g->parts : g->kernel;
}

static int decays_of_head(const struct sh_recurrent *r)
{
    return r->kind == SH_GATED_LRU ? r->d_v : r->own_decays ? r->d_k : 1;
}

int sh_dim_size(const struct sh_arch *a, enum sh_dim dim)
{
    switch (dim) {
    case SH_ONE: case SH_DIM_ONE_ROW: return 1;
    case SH_DIM_MODEL: return a->d_model;
    case SH_DIM_EMBED: return a->d_embed;
    case SH_DIM_FF: return a->d_ff;
    case SH_DIM_VOCAB: return a->n_vocab;
    case SH_DIM_OUT: return a->n_out ? a->n_out : a->n_vocab;
    case SH_DIM_MORE: return a->n_vocab - sh_dim_size(a, SH_DIM_OUT);
    case SH_DIM_POS: return a->max_pos + a->pos_offset;
    case SH_DIM_Q: return a->n_head * (a->d_key ? a->d_key : a->d_head);
    case SH_DIM_KV: return a->n_kv_head * (a->d_key ? a->d_key : a->d_head);
    case SH_DIM_KV_VALUES: return a->n_kv_head * a->d_value;
    case SH_DIM_HEAD: return a->d_key ? a->d_key : a->d_head;
    case SH_DIM_HEADS: return a->n_head;
    case SH_DIM_KV_HEADS: return a->n_kv_head;
    case SH_DIM_GATES: return a->gates_heads ? a->n_head : a->n_head * a->d_head;
    case SH_DIM_Q_RANK: return a->latent.q_rank;
    case SH_DIM_Q_RANKS: return a->latent.q_rank * (a->latent.both ? 2 : 1);
    case SH_DIM_NORM_RANK: return a->norm_rank;
    case SH_DIM_PAIR: return 2 * a->d_model;
    case SH_DIM_ADAPTER: return a->shared.rank;
    case SH_DIM_KV_RANK: return a->latent.rank;
    case SH_DIM_KV_A: return a->latent.rank + a->latent.d_rope;
    case SH_DIM_Q_B: return a->n_head * (a->latent.d_nope + a->latent.d_rope);
    case SH_DIM_KV_B: return a->n_head * (a->latent.d_nope + a->latent.d_v);
    case SH_DIM_VALUES: return a->n_head * (a->d_value ? a->d_value : a->latent.d_v);
    case SH_DIM_NOPE: return a->latent.d_nope;
    case SH_DIM_VALUE: return a->latent.d_v;
    case SH_DIM_KV_SET: return a->n_kv_head / (a->mix.attends ? a->mix.used : 1) * a->d_head;
    case SH_DIM_ROPE_PAIRS: return a->n_rot / 2;
    case SH_DIM_OWN: return a->streams.d_own;
    case SH_DIM_OWN_ALL: return a->n_layer * a->streams.d_own;
    case SH_DIM_OWN_ROWS: return a->streams.n_own;
    case SH_DIM_STREAMS: return a->streams.n;
    case SH_DIM_STREAM_PAIRS: return a->streams.n * a->streams.n;
    case SH_DIM_LAUREL: return a->streams.laurel;
    case SH_DIM_HYPER: return sh_hyper_weights(&a->streams);
    case SH_DIM_HYPER_IN: return a->streams.n * a->d_model;
    case SH_DIM_HYPER_SCALES: return a->streams.rounds ? 3 : 2;
    case SH_DIM_MIXER_RANK: return a->streams.rank;
    case SH_DIM_NGRAM: case SH_DIM_NGRAM_HEAD: case SH_DIM_NGRAM_ROWS: case SH_DIM_NGRAM_PARTS:
    case SH_DIM_NGRAM_KERNEL: return ngram_size(&a->ngrams, dim);
    case SH_DIM_RECUR_KEYS: return a->recurrent.n_k * a->recurrent.d_k;
    case SH_DIM_RECUR_VALUES: return a->recurrent.n_v * a->recurrent.d_v;
    case SH_DIM_RECUR_HEADS: return a->recurrent.n_v;
    case SH_DIM_RECUR_HEAD: return a->recurrent.d_v;
    case SH_DIM_RECUR_CHANNELS: return sh_recurrent_channels(&a->recurrent);
    case SH_DIM_RECUR_KERNEL: return a->recurrent.kernel;
    case SH_DIM_RECUR_STATE: return a->recurrent.d_k;
    case SH_DIM_RECUR_RANK: return a->recurrent.rank;
    case SH_DIM_RECUR_DECAYS: return a->recurrent.n_v * decays_of_head(&a->recurrent);
    case SH_DIM_RECUR_GATE: return a->recurrent.gate_rank;
    case SH_DIM_RECUR_RANK_B_C: return a->recurrent.rank + 2 * a->recurrent.d_k;
    case SH_DIM_EXPERTS: return a->mix.n;
    case SH_DIM_ROUTES: return a->mix.n + a->mix.zero;
    case SH_DIM_EXPERT_FF: return a->mix.width;
    case SH_DIM_EXPERT_IO: return a->mix.latent ? a->mix.latent : a->d_model;
    case SH_DIM_SHARED_FF: return a->mix.shared_width;
    }
    return 0;
}

int sh_role_is_norm(enum sh_role role)
{
    static const unsigned char norms[SH_N_ROLE] = {
        [SH_FINAL_NORM_W] = 1, [SH_EMBED_NORM_W] = 1, [SH_ATTN_NORM_W] = 1, [SH_MLP_NORM_W] = 1,
        [SH_Q_NORM_W] = 1, [SH_K_NORM_W] = 1, [SH_ATTN_POST_W] = 1, [SH_MLP_POST_W] = 1,
        [SH_O_NORM_W] = 1, [SH_DOWN_NORM_W] = 1, [SH_Q_A_NORM_W] = 1, [SH_KV_A_NORM_W] = 1, [SH_OWN_NORM_W] = 1,
        [SH_OWN_POST_W] = 1, [SH_ALTUP_NORM_W] = 1, [SH_LAUREL_NORM_W] = 1, [SH_EXPERT_NORM_W] = 1,
        [SH_PAIR_NORM_W] = 1, [SH_ROUTER_NORM_W] = 1, [SH_MLP_POST_1_W] = 1, [SH_MLP_POST_2_W] = 1,
        [SH_HEAD_NORM_W] = 1, [SH_MIXER_HEAD_NORM_W] = 1, [SH_MIXER_ATTN_NORM_W] = 1, [SH_MIXER_MLP_NORM_W] = 1,
        [SH_NGRAM_KEY_NORM_W] = 1, [SH_NGRAM_QUERY_NORM_W] = 1, [SH_NGRAM_CONV_NORM_W] = 1};
    return norms[role];
}

int sh_role_is_less_one(enum sh_role role, const struct sh_arch *a)
{
    return sh_role_is_norm(role) && a->flags & SH_NORM_PLUS_ONE && !(a->final_whole && role == SH_FINAL_NORM_W);
}

/* Attention's, of recurrent layers, of feed-forward blocks: 1, 2, 3; 0: others. */
static int block_of(enum sh_role role)
{
    static const unsigned char blocks[SH_N_ROLE] = {
        [SH_Q_W] = 1, [SH_Q_B] = 1, [SH_K_W] = 1, [SH_K_B] = 1, [SH_V_W] = 1, [SH_V_B] = 1, [SH_O_W] = 1, [SH_O_B] = 1,
        [SH_Q_NORM_W] = 1, [SH_K_NORM_W] = 1, [SH_Q_NORM_B] = 1, [SH_K_NORM_B] = 1, [SH_O_NORM_W] = 1,
        [SH_O_NORM_B] = 1, [SH_ATTN_GATE_W] = 1, [SH_ATTN_GATE_B] = 1, [SH_Q_A_W] = 1, [SH_Q_A_NORM_W] = 1,
        [SH_Q_B_W] = 1, [SH_KV_A_W] = 1, [SH_KV_A_NORM_W] = 1, [SH_KV_B_W] = 1, [SH_Q_A_B] = 1, [SH_KV_A_B] = 1,
        [SH_K_B_W] = 1, [SH_LAMBDA_Q_1] = 1, [SH_LAMBDA_K_1] = 1, [SH_LAMBDA_Q_2] = 1, [SH_LAMBDA_K_2] = 1,
        [SH_KEY_BIAS_W] = 1, [SH_KEY_BIAS_B] = 1, [SH_KEY_DECAY] = 1, [SH_QUERY_LOG] = 1, [SH_QUERY_KEPT] = 1,
        [SH_QUERY_FACTOR] = 1, [SH_ATTN_GATE_FACTOR] = 1, [SH_GATE_FACTOR] = 3, [SH_UP_FACTOR] = 3,
        [SH_V_B_W] = 1, [SH_RECUR_CONV_K] = 2, [SH_RECUR_CONV_V] = 2, [SH_RECUR_A_IN_W] = 2, [SH_RECUR_Z_IN_W] = 2,
        [SH_RECUR_DECAY_W] = 2, [SH_RECUR_INPUT_W] = 2,
        [SH_PAIR_NORM_W] = 1, [SH_BLOCK_OUT_W] = 1, [SH_FEED_ADAPT_W] = 3, [SH_GATE_ADAPT_W] = 3, [SH_UP_ADAPT_W] = 3,
        [SH_UP_W] = 3, [SH_UP_B] = 3, [SH_GATE_W] = 3, [SH_GATE_B] = 3, [SH_DOWN_W] = 3, [SH_DOWN_B] = 3};
    return role >= SH_RECUR_Q_W && role <= SH_RECUR_OUT_B ? 2 : blocks[role];
}

/* Does the layer lack it: another one's keys and values stand in, or its own keys for its values? */
static int is_lent(enum sh_role role, const struct sh_arch *a, int layer)
{
    int is_value = role == SH_V_W || role == SH_V_B, is_key = role == SH_K_W || role == SH_K_B ||
                   role == SH_K_NORM_W || role == SH_K_NORM_B;
    return (is_value || is_key) &&
           (sh_arch_borrows(a, layer) || (is_value && a->values_are_keys && !sh_arch_window(a, layer)));
}

/* Biases, and the norm of a state space, that not every recurrent layer has. */
static int recurrent_has(enum sh_role role, const struct sh_recurrent *r)
{
    int is_bias = role == SH_RECUR_X_B || role == SH_RECUR_Z_B || role == SH_RECUR_B_B || role == SH_RECUR_A_B;
    return (!is_bias || r->has_bias) && (role != SH_RECUR_OUT_B || r->has_out_bias) &&
           (role != SH_RECUR_CONV_B || r->has_conv_bias) &&
           (role != SH_RECUR_NORM_W || r->normed || r->kind == SH_DELTA_RULE);
}

/* A layer's norms at places where only other layers have them. */
static int is_misplaced(enum sh_role role, const struct sh_arch *a, int layer)
{
    int before = role == SH_ATTN_NORM_W || role == SH_MLP_NORM_W;
    int after = role == SH_ATTN_POST_W || role == SH_MLP_POST_W;
    if (a->first_bare && !layer && (role == SH_ATTN_NORM_W || role == SH_ATTN_NORM_B))
        return 1;
    enum sh_norm_place place = sh_arch_norm_place(a, layer);
    return (place == SH_NORM_OUT && before) || (place == SH_NORM_PRE && after);
}

/* What only models with several streams, or with embeddings of layers, have. */
static int is_of_streams(enum sh_role role, const struct sh_streams *s)
{
    if (role >= SH_STREAM_IN_1 && role <= SH_STREAM_OUT_3)
        return (int)(role - SH_STREAM_IN_1) % 3 + 1 < s->n;
    return s->d_own || (role != SH_OWN_EMBED && role != SH_OWN_PROJ && role != SH_OWN_NORM_W && role != SH_OWN_GATE_W &&
                        role != SH_OWN_OUT_W && role != SH_OWN_POST_W);
}

/* The norm before a block that the layer lacks, or the product of a block that is none. */
static int is_of_none(enum sh_role role, const struct sh_arch *a, int layer)
{
    if (role == SH_ATTN_PRODUCT_W || role == SH_FEED_PRODUCT_W)
        return (role == SH_ATTN_PRODUCT_W ? sh_arch_attention_kind(a, layer)
                                          : sh_arch_feed_kind(a, layer)) != SH_BLOCK_PRODUCT;
    return ((role == SH_ATTN_NORM_W || role == SH_ATTN_NORM_B) && sh_arch_attention_kind(a, layer) == SH_BLOCK_NONE) ||
           ((role == SH_MLP_NORM_W || role == SH_MLP_NORM_B) && sh_arch_feed_kind(a, layer) == SH_BLOCK_NONE);
}

/* What only layers with a shared block have, where some have one. */
static int is_of_shared(enum sh_role role, const struct sh_arch *a, int layer)
{
    if (role >= SH_Q_ADAPT_IN_W && role <= SH_V_ADAPT_W)
        return a->shared.adapts && sh_arch_shares(a, layer);
    return role != SH_MLP_NORM_W || !a->shared.n || sh_arch_shares(a, layer);
}

int sh_param_exists(const struct sh_param *p, const struct sh_arch *a, int layer)
{
    if (p->role >= SH_LAYER_ROLE && !is_of_shared(p->role, a, layer))
        return 0;
    if ((p->role == SH_EXPERT_IN_W || p->role == SH_EXPERT_OUT_W) && !a->mix.latent)
        return 0;
    if (!is_of_streams(p->role, &a->streams) ||
        (p->role >= SH_LAYER_ROLE && (is_lent(p->role, a, layer) || is_misplaced(p->role, a, layer) ||
                                      is_of_none(p->role, a, layer))))
        return 0;
    if (p->role == SH_HEAD_DENSE_B && !a->dense_bias)
        return 0;
    if (p->role >= SH_NGRAM_EMBED && p->role <= SH_NGRAM_CONV && !sh_arch_ngrams(a, layer))
        return 0;
    if (p->role == SH_SINKS && a->local_sinks && !sh_arch_window(a, layer))
        return 0;
    int block = p->role < SH_LAYER_ROLE ? 0 : block_of(p->role);
    if ((block == 1 && !sh_arch_attends(a, layer)) || (block == 3 && !sh_arch_feeds(a, layer)) ||
        (block == 2 && !(sh_arch_recurs(a, layer) && recurrent_has(p->role, &a->recurrent))))
        return 0;
    unsigned flags = p->role < SH_LAYER_ROLE ? a->flags : sh_arch_flags(a, layer);
    return !(p->needs & ~flags) && !(p->unless & flags);
}

struct sh_numbers sh_param_numbers(const struct sh_family *f, const struct sh_arch *a, const struct sh_param *p,
                                   int layer)
{
    int parts = f->parts ? f->parts : 1, number = sh_arch_number(a, layer / parts);
    number = p->form & SH_PAIR_FIRST ? 2 * number : p->form & SH_PAIR_SECOND ? 2 * number + 1 : number;
    return (struct sh_numbers){number, p->form & SH_OF_BLOCK ? sh_arch_block_number(a, layer) : layer % parts};
}

static int rows_of(const struct sh_arch *a, const struct sh_param *p)
{
    return sh_dim_size(a, p->rows == SH_ONE ? p->cols : p->rows);
}

/* Queries and keys, their biases and their norms: what rotates. */
static int turns(enum sh_role role)
{
    static const unsigned char turning[SH_N_ROLE] = {
        [SH_Q_W] = 1, [SH_Q_B] = 1, [SH_K_W] = 1, [SH_K_B] = 1,
        [SH_Q_NORM_W] = 1, [SH_Q_NORM_B] = 1, [SH_K_NORM_W] = 1, [SH_K_NORM_B] = 1};
    return turning[role];
}

struct sh_layout sh_layout_of(const struct sh_family *f, const struct sh_arch *a, const struct sh_param *p, int layer)
{
    struct sh_layout l = {.rows = rows_of(a, p), .cols = p->rows == SH_ONE ? 1 : sh_dim_size(a, p->cols),
                          .is_transposed = (p->form & SH_TRANSPOSED) && p->rows != SH_ONE};
    int blocks = p->form & SH_INTERLEAVED ? a->n_kv_head : p->form & SH_BY_HEAD ? a->n_head
                 : p->form & SH_BY_RECUR_HEAD ? a->recurrent.n_k : p->form & SH_IN_FOURTHS ? 4
                 : p->form & SH_ALTERNATING ? rows_of(a, p) : 1;
    for (const struct sh_param *other = f->params; other->name; other++) {
        if (strcmp(other->name, p->name) || !sh_param_exists(other, a, layer))
            continue;
        l.first += other < p ? rows_of(a, other) / blocks : 0;
        l.total += rows_of(a, other);
    }
    l.run = l.rows / blocks;
    l.step = l.total / blocks;
    if (turns(p->role) && a->flags & SH_IN_PAIRS && a->n_rot) {
        l.n_rot = a->n_rot;
        l.d_head = a->d_head;
    }
    if ((p->role == SH_Q_B_W || p->role == SH_KV_A_W || p->role == SH_KV_A_B) && a->flags & SH_IN_PAIRS) {
        l.n_rot = a->latent.d_rope;
        l.still = p->role == SH_Q_B_W ? a->latent.d_nope : a->latent.rank;
        l.d_head = l.still + l.n_rot;
    }
    return l;
}

int sh_layout_is_plain(const struct sh_layout *l)
{
    return l->run == l->rows && !l->is_transposed && !l->n_rot;
}

/* Neighbouring pairs become pairs of halves: the first elements of all, then the second ones. */
static int parted(const struct sh_layout *l, int row)
{
    int j = l->n_rot ? row % l->d_head - l->still : 0, half = l->n_rot / 2;
    if (!l->n_rot || j < 0 || j >= l->n_rot)
        return row;
    return row - j + (j < half ? 2 * j : 2 * (j - half) + 1);
}

size_t sh_layout_row(const struct sh_layout *l, int row)
{
    row = parted(l, row);
    return (size_t)l->first + (size_t)(row / l->run) * (size_t)l->step + (size_t)(row % l->run);
}

/* Columns of the tensor become rows, a block at a time, so that neither side is walked in long strides. */
enum { BLOCK = 32 };

struct gathering {
    const struct sh_layout *l;
    const char *from;
    char *to;
    size_t bytes;
};

static void gather_block(void *arg, int block)
{
    const struct gathering *g = arg;
    const struct sh_layout *l = g->l;
    size_t cols = (size_t)l->cols, total = (size_t)l->total, bytes = g->bytes;
    int row0 = block * BLOCK;
    for (size_t col0 = 0; col0 < cols; col0 += BLOCK)
        for (int row = row0; row < row0 + BLOCK && row < l->rows; row++) {
            size_t stored = sh_layout_row(l, row);
            for (size_t col = col0; col < col0 + BLOCK && col < cols; col++)
                memcpy(g->to + ((size_t)row * cols + col) * bytes, g->from + (col * total + stored) * bytes, bytes);
        }
}

void sh_layout_gather(const struct sh_layout *l, const void *from, void *to, size_t bytes)
{
    size_t width = (size_t)l->cols * bytes;
    if (l->is_transposed) {
        sh_team_each(0, (l->rows + BLOCK - 1) / BLOCK, gather_block, &(struct gathering){l, from, to, bytes});
        return;
    }
    for (int row = 0; row < l->rows; row++)
        memcpy((char *)to + (size_t)row * width, (const char *)from + sh_layout_row(l, row) * width, width);
}
