/* SPDX-License-Identifier: Apache-2.0 */
/* Zamba2's transformer blocks (arXiv 2411.15242), which several layers share: before its recurrence such a layer sends
 * its input and the token's embedding, together and normed, through attention and a feed-forward block; the result,
 * multiplied by a matrix of the layer, is added to the input of the recurrence, and to nothing else. Low-rank adapters
 * make each use of a block different. */
#include "src/model/layers/layer_parts.h"

/* The embedding follows the hidden state in a token's row. */
struct sh_mat sh_shared_begin(const struct sh_layer *l, const struct sh_activations *a, int rows)
{
    int width = 2 * a->arch->d_model;
    struct sh_mat pair = sh_dense(a->pair, a->dtype, rows, width);
    sh_layer_norm(l, a->arch, pair, sh_layer_part(a->arch, a->hidden, rows, 0, width), SH_PAIR_NORM_W, SH_N_ROLE, 0);
    return pair;
}

void sh_shared_end(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x,
                   struct sh_mat mixed)
{
    struct sh_mat block = sh_dense(a->block, SH_F32, h.rows, h.cols);
    struct sh_mat up = sh_dense(a->up, a->dtype, h.rows, a->arch->d_ff);
    const struct sh_expert w = {.gate = l->matrix[SH_GATE_W], .gate_bias = l->vector[SH_GATE_B],
                                .up = l->matrix[SH_UP_W], .up_bias = l->vector[SH_UP_B]};
    struct sh_scatter add = {.out = block, .x = h, .by = 1};
    sh_layer_linear(l, block, mixed, SH_O_W, SH_O_B, SH_ACT_NONE, 0);
    sh_layer_norm(l, a->arch, x, block, SH_MLP_NORM_W, SH_N_ROLE, 0);
    sh_layer_feed(l, a, up, x, &w, SH_LIMITS_OTHERS);
    sh_layer_linear(l, block, up, SH_DOWN_W, SH_DOWN_B, SH_ACT_NONE, 0);
    l->b->cast(l->d, x, block);
    sh_layer_linear(l, block, x, SH_BLOCK_OUT_W, SH_N_ROLE, SH_ACT_NONE, 0);
    l->b->scatter(l->d, &add);
    sh_layer_norm(l, a->arch, x, block, SH_ATTN_NORM_W, SH_N_ROLE, 0);
}

/* ---- adapters ---- */

static struct sh_mat narrow(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, enum sh_role w)
{
    struct sh_mat low = sh_dense(a->adapted, a->dtype, x.rows, a->arch->shared.rank);
    sh_layer_linear(l, low, x, w, SH_N_ROLE, SH_ACT_NONE, 0);
    return low;
}

void sh_shared_adapt(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                     struct sh_mat x)
{
    static const enum sh_role in[] = {SH_Q_ADAPT_IN_W, SH_K_ADAPT_IN_W, SH_V_ADAPT_IN_W};
    static const enum sh_role out[] = {SH_Q_ADAPT_W, SH_K_ADAPT_W, SH_V_ADAPT_W};
    const struct sh_mat to[] = {attend->q, attend->k, attend->v};
    for (int i = 0; i < 3 && l->matrix[in[i]]; i++)
        sh_layer_linear(l, to[i], narrow(l, a, x, in[i]), out[i], SH_N_ROLE, SH_ACT_NONE, 1);
}

void sh_shared_adapt_feed(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat gate,
                          struct sh_mat up, struct sh_mat x)
{
    if (!l->matrix[SH_FEED_ADAPT_W])
        return;
    struct sh_mat low = narrow(l, a, x, SH_FEED_ADAPT_W);
    sh_layer_linear(l, gate, low, SH_GATE_ADAPT_W, SH_N_ROLE, SH_ACT_NONE, 1);
    sh_layer_linear(l, up, low, SH_UP_ADAPT_W, SH_N_ROLE, SH_ACT_NONE, 1);
}
