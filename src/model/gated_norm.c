/* SPDX-License-Identifier: Apache-2.0 */
/* The norm before a block. In A.X-K2 what it gives, y, meets a gate of its own: y sigmoid(W_out silu(W_in y)), where
 * W_in gives a few numbers. */
#include "src/model/layer_parts.h"

static void multiply(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_act act)
{
    struct sh_linear a = {.out = out, .x = x, .w = l->matrix[w], .act = act};
    l->b->linear(l->d, &a);
}

void sh_block_norm(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h,
                   enum sh_role w, enum sh_role bias)
{
    const struct sh_arch *c = a->arch;
    enum sh_role in = w == SH_ATTN_NORM_W ? SH_ATTN_NORM_IN_W : SH_MLP_NORM_IN_W;
    enum sh_role out = w == SH_ATTN_NORM_W ? SH_ATTN_NORM_OUT_W : SH_MLP_NORM_OUT_W;
    struct sh_norm norm = {.out = x, .x = h, .weight = l->vector[w], .bias = l->vector[bias], .eps = c->norm_eps,
                           .kind = c->norm};
    if (!l->matrix[in]) {
        l->b->norm(l->d, &norm);
        return;
    }
    struct sh_mat y = sh_dense(a->norm_y, SH_F32, x.rows, x.cols);
    struct sh_mat low = sh_dense(a->norm_low, a->dtype, x.rows, c->norm_rank);
    struct sh_gate gate = {.out = x, .gate = sh_dense(a->norm_gate, SH_F32, x.rows, x.cols), .up = y,
                           .act = SH_ACT_SIGMOID};
    norm.out = y;
    l->b->norm(l->d, &norm);
    l->b->cast(l->d, x, y);
    multiply(l, low, x, in, SH_ACT_SILU);
    multiply(l, gate.gate, low, out, SH_ACT_NONE);
    l->b->gate(l->d, &gate);
}
