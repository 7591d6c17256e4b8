/* SPDX-License-Identifier: Apache-2.0 */
/* Latent attention (DeepSeek-V2, arXiv 2405.04434, 2.1), in the form that keeps one latent a token for all heads. With
 * c the normed latent and r its rotary key, the score of head h is
 *
 *     q_nope (W_k c) + q_rope r = (W_k^T q_nope) c + q_rope r,
 *
 * so that each head's query is [q_rope, W_k^T q_nope], all heads have the one key [r, c], which is their value, too,
 * and W_v of the head multiplies what attention gives, without its first, rotary part. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

/* Rows [first, first + rows) of t, transposed if asked for, as a weight. */
static struct sh_weight *cut(const struct sh_layer *l, const struct sh_tensor *t, int first, int rows, int transposed,
                             enum sh_type dtype, struct sh_err *e)
{
    size_t bytes = sh_type_bytes(t->type), cols = (size_t)t->cols, n = (size_t)rows;
    const char *from = (const char *)t->at + (size_t)first * cols * bytes;
    char *copy = xmalloc(n * cols * bytes);
    for (size_t i = 0; i < n && transposed; i++)
        for (size_t k = 0; k < cols; k++)
            memcpy(copy + (k * n + i) * bytes, from + (i * cols + k) * bytes, bytes);
    if (!transposed)
        memcpy(copy, from, n * cols * bytes);
    struct sh_weight *w = l->b->weight(l->d, copy, t->type, transposed ? t->cols : rows, transposed ? rows : t->cols,
                                       dtype, e);
    free(copy);
    if (!w)
        sh_err_prefix(e, "%s", t->name);
    return w;
}

int sh_latent_load(struct sh_layer *l, struct sh_model *m, enum sh_type dtype, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    const struct sh_latent own = sh_arch_latent(c, l->index), *a = &own;
    struct sh_tensor t;
    if (!a->rank || !sh_arch_attends(c, l->index))
        return 0;
    if (sh_model_tensor(m, SH_KV_B_W, l->index, &t, e) || sh_model_check_finite(&t, e))
        return -1;
    l->n_latent = c->n_head;
    l->latent = xcalloc((size_t)l->n_latent, sizeof *l->latent);
    for (int h = 0; h < l->n_latent && !t.at; h++)
        if (sh_layer_numbered(l, SH_K_B_W, h, 0, &l->latent[h].key, NULL, e) ||
            sh_layer_numbered(l, SH_V_B_W, h, 0, &l->latent[h].value, NULL, e))
            return -1;
    for (int h = 0; h < l->n_latent && t.at; h++) {
        int row = h * (a->d_nope + a->d_v);
        if (!(l->latent[h].key = cut(l, &t, row, a->d_nope, 1, dtype, e)) ||
            !(l->latent[h].value = cut(l, &t, row + a->d_nope, a->d_v, 0, dtype, e)))
            return -1;
    }
    return 0;
}

void sh_latent_drop(struct sh_layer *l)
{
    for (int h = 0; h < l->n_latent; h++) {
        l->b->drop(l->d, l->latent[h].key);
        l->b->drop(l->d, l->latent[h].value);
    }
    free(l->latent);
}

static struct sh_mat head_of(struct sh_mat m, int heads, int head, int col, int cols)
{
    int at = head * (m.cols / heads) + col;
    return (struct sh_mat){(char *)m.at + (size_t)at * sh_type_bytes(m.type), m.type, m.rows, cols, m.stride};
}

static void multiply(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, const struct sh_weight *w,
                     const float *bias)
{
    struct sh_linear a = {.out = out, .x = x, .w = w, .bias = bias};
    l->b->linear(l->d, &a);
}

/* The models' own code gives the norms of latents no epsilon of the config's, but for Hy4 with pictures. */
static void norm(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat out, struct sh_mat x, enum sh_role w)
{
    struct sh_norm a = {.out = out, .x = x, .weight = l->vector[w], .eps = c->latent.eps > 0 ? c->latent.eps : 1e-6f,
                        .kind = c->norm};
    l->b->norm(l->d, &a);
}

void sh_latent_project(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat q, struct sh_mat k,
                       struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    const struct sh_latent own = sh_arch_latent(c, l->index), *t = &own;
    int heads = c->n_head, wide = t->d_nope + t->d_rope;
    struct sh_mat raw = sh_dense(a->latent_q, a->dtype, x.rows, heads * wide);
    struct sh_mat both = sh_dense(a->latent_kv, SH_F32, x.rows, t->rank + t->d_rope);
    if (t->q_rank) {
        struct sh_mat narrow = sh_dense(a->latent_a, SH_F32, x.rows, t->q_rank);
        struct sh_mat all = sh_dense(a->latent_x, a->dtype, x.rows, t->both ? 2 * t->q_rank : t->q_rank);
        multiply(l, narrow, x, l->matrix[SH_Q_A_W], l->vector[SH_Q_A_B]);
        norm(l, c, sh_columns_of(all, 1, 0, t->q_rank), narrow, SH_Q_A_NORM_W);
        if (t->both)
            l->b->cast(l->d, sh_columns_of(all, 1, t->q_rank, t->q_rank), narrow);
        multiply(l, raw, all, l->matrix[SH_Q_B_W], NULL);
    } else {
        multiply(l, raw, x, l->matrix[SH_Q_B_W], NULL);
    }
    if (t->d_rope)
        l->b->cast(l->d, sh_columns_of(q, heads, 0, t->d_rope), sh_columns_of(raw, heads, t->d_nope, t->d_rope));
    for (int h = 0; h < heads; h++)
        multiply(l, head_of(q, heads, h, t->d_rope, t->rank), head_of(raw, heads, h, 0, t->d_nope), l->latent[h].key,
                 NULL);
    multiply(l, both, x, l->matrix[SH_KV_A_W], l->vector[SH_KV_A_B]);
    if (t->d_rope)
        l->b->cast(l->d, sh_columns_of(k, 1, 0, t->d_rope), sh_columns_of(both, 1, t->rank, t->d_rope));
    norm(l, c, sh_columns_of(k, 1, t->d_rope, t->rank), sh_columns_of(both, 1, 0, t->rank), SH_KV_A_NORM_W);
}

void sh_latent_values(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat mixed)
{
    const struct sh_latent own = sh_arch_latent(a->arch, l->index), *t = &own;
    int heads = a->arch->n_head;
    for (int h = 0; h < heads; h++)
        multiply(l, head_of(out, heads, h, 0, t->d_v), head_of(mixed, heads, h, t->d_rope, t->rank),
                 l->latent[h].value, NULL);
}
