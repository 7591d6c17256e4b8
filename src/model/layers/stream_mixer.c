/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-connections (hyper.c) in the form of Qwen4-Exp: each number of each stream has a weight of its own. With y the
 * n streams, each normed, a block reads the mean over the streams of y sigmoid(U silu(D y / n)); the rank of D and U is
 * low. The block's output, times 2 sigmoid(A y / n), a number for each stream, is added to all streams. The output head
 * reads such a mean. Here y is divided by n at once: the weights of its norm are. */
#include "src/model/layers/layer_parts.h"

int sh_mixer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role first, int layer,
                  struct sh_hyper *out, struct sh_err *e)
{
    int adds = first != SH_MIXER_HEAD_NORM_W;
    return sh_layer_vector(b, d, m, first, layer, &out->norm, e) ||
           sh_layer_matrix(b, d, m, (enum sh_role)(first + 1), layer, SH_F32, &out->down, e) ||
           sh_layer_matrix(b, d, m, (enum sh_role)(first + 2), layer, SH_F32, &out->up, e) ||
           (adds && sh_layer_matrix(b, d, m, (enum sh_role)(first + 3), layer, SH_F32, &out->add, e)) ? -1 : 0;
}

void sh_mixer_norm(const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat x, const float *weight)
{
    int n = p->arch->streams.n, rows = out.rows * n, cols = out.cols / n;
    struct sh_norm norm = {.out = sh_dense(out.at, SH_F32, rows, cols), .x = sh_dense(x.at, SH_F32, rows, cols),
                           .weight = weight, .n_own = n, .eps = p->arch->norm_eps, .kind = SH_NORM_RMS};
    p->b->norm(p->d, &norm);
}

/* In `share`: weights [rows, n], then the same stream by stream. */
static void weigh_added(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat flat)
{
    int n = p->arch->streams.n;
    struct sh_linear add = {.out = sh_dense(p->share, SH_F32, flat.rows, n), .x = flat, .w = y->add,
                            .act = SH_ACT_SIGMOID};
    float *by_stream = (float *)p->share + (size_t)flat.rows * (size_t)n;
    p->b->linear(p->d, &add);
    for (int i = 0; i < n; i++)
        p->b->cast(p->d, sh_dense(by_stream + (size_t)i * (size_t)flat.rows, SH_F32, flat.rows, 1),
                   sh_columns(add.out, i, 1));
}

void sh_mixer_join(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat streams)
{
    struct sh_mat flat = sh_dense(p->wide, SH_F32, out.rows, streams.cols), mix = flat;
    mix.at = p->mix;
    struct sh_linear down = {.out = sh_dense(p->low, SH_F32, out.rows, p->arch->streams.rank), .x = flat, .w = y->down,
                             .act = SH_ACT_SILU};
    struct sh_linear up = {.out = mix, .x = down.out, .w = y->up};
    struct sh_gate gate = {.out = mix, .gate = mix, .up = flat, .act = SH_ACT_SIGMOID};
    p->b->cast(p->d, flat, streams);
    sh_mixer_norm(p, flat, flat, y->norm);
    p->b->linear(p->d, &down);
    p->b->linear(p->d, &up);
    p->b->gate(p->d, &gate);
    p->b->cast(p->d, out, sh_columns(mix, 0, out.cols));
    for (int i = 1; i < p->arch->streams.n; i++) {
        struct sh_scatter add = {.out = out, .x = sh_columns(mix, i * out.cols, out.cols), .by = 1};
        p->b->scatter(p->d, &add);
    }
    if (y->add)
        weigh_added(y, p, flat);
}
