/* SPDX-License-Identifier: Apache-2.0 */
/* The norms before blocks. In A.X-K2 the output y of a norm has a gate: y sigmoid(W_out silu(W_in y)), where the output
 * of W_in has norm_rank numbers. In MiniMax-Text-01 y, times a factor, replaces the hidden states. */
#include "src/model/layers/layer_parts.h"

void sh_block_norm(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h,
                   enum sh_role w, enum sh_role bias)
{
    const struct sh_arch *c = a->arch;
    enum sh_role in = w == SH_ATTN_NORM_W ? SH_ATTN_NORM_IN_W : SH_MLP_NORM_IN_W;
    enum sh_role out = w == SH_ATTN_NORM_W ? SH_ATTN_NORM_OUT_W : SH_MLP_NORM_OUT_W;
    if (!l->matrix[in]) {
        sh_layer_norm(l, c, x, h, w, bias, 0);
        return;
    }
    struct sh_mat y = sh_dense(a->norm_y, SH_F32, x.rows, x.cols);
    struct sh_mat low = sh_dense(a->norm_low, a->dtype, x.rows, c->norm_rank);
    struct sh_gate gate = {.out = x, .gate = sh_dense(a->norm_gate, SH_F32, x.rows, x.cols), .up = y,
                           .act = SH_ACT_SIGMOID};
    sh_layer_norm(l, c, y, h, w, bias, 0);
    l->b->cast(l->d, x, y);
    sh_layer_linear(l, low, x, in, SH_N_ROLE, SH_ACT_SILU, 0);
    sh_layer_linear(l, gate.gate, low, out, SH_N_ROLE, SH_ACT_NONE, 0);
    l->b->gate(l->d, &gate);
}

void sh_block_take(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, enum sh_adding what)
{
    const struct sh_arch *c = a->arch;
    enum sh_role w = what == SH_ADDS_FEED ? SH_MLP_NORM_W : SH_ATTN_NORM_W;
    const float *keep = l->vector[what == SH_ADDS_FEED ? SH_MLP_KEEP : SH_ATTN_KEEP];
    float by = c->kept_scale[what] > 0 ? c->kept_scale[what] : 1;
    struct sh_scatter scale = {.out = h, .x = h, .by = by - 1};
    if (sh_arch_norm_place(c, l->index) == SH_NORM_TAKEN) {
        sh_layer_norm(l, c, h, h, w, SH_N_ROLE, 0);
        if (by < 1 || by > 1)
            l->b->scatter(l->d, &scale);
    }
    sh_layer_scale(l, h, keep);
}

void sh_block_between(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h)
{
    enum sh_norm_place place = sh_arch_norm_place(a->arch, l->index);
    if (place == SH_NORM_POST)
        sh_block_norm(l, a, h, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B);
    if (place == SH_NORM_POST || place == SH_NORM_OUT)
        l->b->cast(l->d, x, h);
    else if (!(a->arch->flags & SH_PARALLEL))
        sh_block_norm(l, a, x, h, SH_MLP_NORM_W, SH_MLP_NORM_B);
    sh_block_take(l, a, h, SH_ADDS_FEED);
}
