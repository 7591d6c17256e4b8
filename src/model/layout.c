/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/families/family.h"

#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/team.h"

/* ---- numbers of an architecture ---- */

int sh_arch_window(const struct sh_arch *a, int layer)
{
    return a->whole[layer / 64] >> layer % 64 & 1 ? 0 : a->window;
}

void sh_arch_see_all(struct sh_arch *a, int layer)
{
    a->whole[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_arch_turns(const struct sh_arch *a, int layer)
{
    return a->pos == SH_POS_ROTARY && !(a->still[layer / 64] >> layer % 64 & 1);
}

void sh_arch_keep_still(struct sh_arch *a, int layer)
{
    a->still[layer / 64] |= (uint64_t)1 << layer % 64;
}

int sh_arch_tempers(const struct sh_arch *a, int layer)
{
    return a->temper > 0 && !(a->flags & SH_TEMPER_STILL && sh_arch_turns(a, layer));
}

int sh_arch_scales(const struct sh_arch *a)
{
    return a->residual_scale < 1 || a->residual_scale > 1;
}

int sh_arch_mixes_f32(const struct sh_arch *a)
{
    return (a->flags & (SH_HAS_SUB_NORM | SH_ATTENTION_GATE)) != 0;
}

int sh_arch_has_sub(const struct sh_arch *a)
{
    return sh_arch_mixes_f32(a) || a->latent.rank;
}

unsigned sh_arch_flags(const struct sh_arch *a, int layer)
{
    int mixes = a->mix.n && !(a->mix.dense[layer / 64] >> layer % 64 & 1);
    return a->flags | (mixes ? SH_EXPERT_LAYER : 0) | (mixes && a->mix.shared_width ? SH_SHARED_LAYER : 0);
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
    return a->local_rope.base > 0 && sh_arch_window(a, layer) ? &a->local_rope : &a->rope;
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

/* ---- parameters in their tensors ---- */

int sh_dim_size(const struct sh_arch *a, enum sh_dim dim)
{
    switch (dim) {
    case SH_ONE: return 1;
    case SH_DIM_MODEL: return a->d_model;
    case SH_DIM_EMBED: return a->d_embed;
    case SH_DIM_FF: return a->d_ff;
    case SH_DIM_VOCAB: return a->n_vocab;
    case SH_DIM_POS: return a->max_pos + a->pos_offset;
    case SH_DIM_Q: return a->n_head * a->d_head;
    case SH_DIM_KV: return a->n_kv_head * a->d_head;
    case SH_DIM_HEAD: return a->d_head;
    case SH_DIM_HEADS: return a->n_head;
    case SH_DIM_KV_HEADS: return a->n_kv_head;
    case SH_DIM_Q_RANK: return a->latent.q_rank;
    case SH_DIM_KV_RANK: return a->latent.rank;
    case SH_DIM_KV_A: return a->latent.rank + a->latent.d_rope;
    case SH_DIM_Q_B: return a->n_head * (a->latent.d_nope + a->latent.d_rope);
    case SH_DIM_KV_B: return a->n_head * (a->latent.d_nope + a->latent.d_v);
    case SH_DIM_VALUES: return a->n_head * a->latent.d_v;
    case SH_DIM_ONE_ROW: return 1;
    case SH_DIM_EXPERTS: return a->mix.n;
    case SH_DIM_EXPERT_FF: return a->mix.width;
    case SH_DIM_SHARED_FF: return a->mix.shared_width;
    }
    return 0;
}

int sh_role_is_norm(enum sh_role role)
{
    static const unsigned char norms[SH_N_ROLE] = {
        [SH_FINAL_NORM_W] = 1, [SH_EMBED_NORM_W] = 1, [SH_ATTN_NORM_W] = 1, [SH_MLP_NORM_W] = 1,
        [SH_Q_NORM_W] = 1, [SH_K_NORM_W] = 1, [SH_ATTN_POST_W] = 1, [SH_MLP_POST_W] = 1,
        [SH_O_NORM_W] = 1, [SH_DOWN_NORM_W] = 1, [SH_Q_A_NORM_W] = 1, [SH_KV_A_NORM_W] = 1};
    return norms[role];
}

int sh_param_exists(const struct sh_param *p, const struct sh_arch *a, int layer)
{
    unsigned flags = p->role < SH_LAYER_ROLE ? a->flags : sh_arch_flags(a, layer);
    return !(p->needs & ~flags) && !(p->unless & flags);
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
    int blocks = p->form & SH_INTERLEAVED ? a->n_kv_head : p->form & SH_IN_FOURTHS ? 4
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
