/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-connections (arXiv 2409.19606) in the form of Hy4: a token carries n residual streams. A block's input is a
 * weighted sum of the streams, and its output is added to each of them with another weight. All weights are sigmoids of
 * products of all streams, normed together. The output head reads such a sum, too. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layer_parts.h"

int sh_hyper_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role first, int layer,
                  struct sh_hyper *out, struct sh_err *e)
{
    struct sh_layer l = {.index = layer};
    *out = (struct sh_hyper){0};
    return sh_layer_matrix(b, d, m, first, layer, SH_F32, &out->product, e) ||
           sh_layer_read(&l, m, (enum sh_role)(first + 1), &out->base, e) ||
           sh_layer_read(&l, m, (enum sh_role)(first + 2), &out->scale, e) ? -1 : 0;
}

void sh_hyper_drop(const struct sh_backend *b, struct sh_dev *d, struct sh_hyper *h)
{
    b->drop(d, h->product);
    free(h->base);
    free(h->scale);
    *h = (struct sh_hyper){0};
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* From products [rows, n or 2 n] to weights: [rows, n] of the sum, then [n, rows] of what is added. */
static float *weigh(const struct sh_hyper *y, const struct sh_streams *s, const float *product, int rows, int both)
{
    size_t n = (size_t)s->n, all = (size_t)rows * n, wide = both ? 2 * n : n;
    float *weight = xmalloc((size_t)rows * wide * sizeof *weight);
    for (size_t row = 0; row < (size_t)rows; row++)
        for (size_t i = 0; i < n; i++) {
            const float *x = product + row * wide;
            weight[row * n + i] = sigmoid(x[i] * y->scale[0] + y->base[i]) + s->least;
            if (both)
                weight[all + i * (size_t)rows + row] = s->most * sigmoid(x[n + i] * y->scale[1] + y->base[n + i]) +
                                                       s->least;
        }
    return weight;
}

void sh_hyper_join(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat streams,
                   int both)
{
    const struct sh_backend *b = p->b;
    int n = p->arch->streams.n, wide = both ? 2 * n : n;
    size_t bytes = (size_t)out.rows * (size_t)wide * sizeof(float);
    struct sh_mat flat = sh_dense(p->wide, SH_F32, out.rows, streams.cols);
    struct sh_norm norm = {.out = flat, .x = streams, .eps = p->arch->norm_eps, .kind = SH_NORM_RMS};
    struct sh_linear linear = {.out = sh_dense(p->share, SH_F32, out.rows, wide), .x = flat, .w = y->product};
    struct sh_gate gate = {.out = flat, .gate = sh_dense(p->share, SH_F32, out.rows, n), .up = flat};
    float *product = xmalloc(bytes);
    b->norm(p->d, &norm);
    b->linear(p->d, &linear);
    b->get(p->d, product, p->share, bytes);
    float *weight = weigh(y, &p->arch->streams, product, out.rows, both);
    b->put(p->d, p->share, weight, bytes);
    b->cast(p->d, flat, streams);
    b->gate(p->d, &gate);
    b->cast(p->d, out, sh_columns(flat, 0, out.cols));
    for (int i = 1; i < n; i++) {
        struct sh_scatter add = {.out = out, .x = sh_columns(flat, i * out.cols, out.cols), .by = 1};
        b->scatter(p->d, &add);
    }
    free(product);
    free(weight);
}

struct sh_mat sh_hyper_begin(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows,
                             int is_feed)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat h = sh_dense(a->stream_h, SH_F32, rows, c->d_model);
    const struct sh_hyper_place p = {.b = l->b, .d = l->d, .arch = c, .wide = a->stream_was, .share = a->stream_share};
    sh_hyper_join(&l->hyper[is_feed], &p, h, sh_layer_part(c, hidden, rows, 0, c->streams.n * c->d_model), 1);
    return h;
}

void sh_hyper_add(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat block)
{
    const struct sh_arch *c = a->arch;
    const float *weight = (const float *)a->stream_share + (size_t)block.rows * (size_t)c->streams.n;
    for (int i = 0; i < c->streams.n; i++) {
        struct sh_mat stream = sh_layer_part(c, a->hidden, block.rows, (size_t)i * (size_t)c->d_model, c->d_model);
        struct sh_scatter add = {.out = stream, .x = block, .share = weight + (size_t)i * (size_t)block.rows, .by = 1};
        l->b->scatter(l->d, &add);
    }
}
