/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of the gated delta rule (Yang et al., 2024; Qwen3-Next): products give queries, keys, values, their strengths
 * and decays; the backend moves the state (backend.h); what it gives is normed, head by head, and multiplied by
 * SiLU(z). */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layer_parts.h"

/* Columns of the channels. */
static struct sh_mat part(struct sh_mat x, int first, int cols)
{
    x.at = (float *)x.at + first;
    x.cols = cols;
    return x;
}

/* The state of one text that begins here, text after text; nobody keeps it. */
static void run_fresh(const struct sh_layer *l, const struct sh_activations *a, struct sh_delta what, int n_seq,
                      const int *start)
{
    size_t n = sh_delta_state(&a->arch->delta);
    float *zeros = xcalloc(n, sizeof *zeros);
    what.n_seq = 1;
    what.state = a->delta_state;
    for (int s = 0; s < n_seq; s++) {
        what.start = start + s;
        l->b->put(l->d, what.state, zeros, n * sizeof *zeros);
        l->b->delta(l->d, &what);
    }
    free(zeros);
}

struct sh_mat sh_delta_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, int n_seq,
                           const int *start, float *state)
{
    const struct sh_delta_shape *c = &a->arch->delta;
    int keys = c->n_k * c->d_k, values = c->n_v * c->d_v;
    struct sh_mat in = sh_dense(a->delta_x, SH_F32, x.rows, sh_delta_channels(c));
    struct sh_mat z = sh_dense(a->delta_z, SH_F32, x.rows, values), out = z;
    struct sh_mat by_a = sh_dense(a->delta_a, SH_F32, x.rows, c->n_v), by_b = by_a;
    out.at = a->delta_out;
    by_b.at = a->delta_b;
    const struct sh_linear all[] = {
        {.out = part(in, 0, keys), .x = x, .w = l->matrix[SH_DELTA_Q_W]},
        {.out = part(in, keys, keys), .x = x, .w = l->matrix[SH_DELTA_K_W]},
        {.out = part(in, 2 * keys, values), .x = x, .w = l->matrix[SH_DELTA_V_W]},
        {.out = z, .x = x, .w = l->matrix[SH_DELTA_Z_W]}, {.out = by_a, .x = x, .w = l->matrix[SH_DELTA_A_W]},
        {.out = by_b, .x = x, .w = l->matrix[SH_DELTA_B_W]}};
    sh_layer_linears(l, all, 6);
    struct sh_delta what = {.out = out, .x = in, .a = by_a.at, .b = by_b.at, .conv = l->vector[SH_DELTA_CONV],
                            .log_a = l->vector[SH_DELTA_LOG_A], .step = l->vector[SH_DELTA_STEP], .n_k = c->n_k,
                            .n_v = c->n_v, .d_k = c->d_k, .d_v = c->d_v, .kernel = c->kernel,
                            .in_turns = c->in_turns, .n_seq = n_seq, .start = start, .state = state};
    if (state)
        l->b->delta(l->d, &what);
    else
        run_fresh(l, a, what, n_seq, start);
    struct sh_mat heads = sh_dense(out.at, SH_F32, x.rows * c->n_v, c->d_v);
    struct sh_norm norm = {.out = heads, .x = heads, .weight = l->vector[SH_DELTA_NORM_W], .eps = a->arch->norm_eps,
                           .kind = SH_NORM_RMS};
    struct sh_gate gate = {.out = sh_dense(a->delta_y, a->dtype, x.rows, values), .gate = z, .up = out,
                           .act = SH_ACT_SILU};
    l->b->norm(l->d, &norm);
    l->b->gate(l->d, &gate);
    return gate.out;
}
