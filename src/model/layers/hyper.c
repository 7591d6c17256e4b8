/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-connections (arXiv 2409.19606) in the form of Hy4: a token carries n residual streams. A block's input is a
 * weighted sum of the streams, and its output is added to each of them with another weight. All weights are sigmoids of
 * products of all streams, normed together. The output head reads such a sum, too, or the mean.
 *
 * Manifold-constrained hyper-connections (arXiv 2512.24880; GLM-5.3-Flash) also mix the streams before the output is
 * added: stream k becomes the sum over j of C[j, k] stream j. C is nearly doubly stochastic: it starts as a softmax of
 * such products in each row, and then columns and rows are divided by their sums in turn (Sinkhorn and Knopp). */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

int sh_hyper_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role first, int layer,
                  struct sh_hyper *out, struct sh_err *e)
{
    struct sh_layer l = {.index = layer};
    return sh_layer_matrix(b, d, m, first, layer, SH_F32, &out->product, e) ||
           sh_layer_read(&l, m, (enum sh_role)(first + 1), &out->base, e) ||
           sh_layer_read(&l, m, (enum sh_role)(first + 2), &out->scale, e) ? -1 : 0;
}

void sh_hyper_drop(const struct sh_backend *b, struct sh_dev *d, struct sh_hyper *h)
{
    b->drop(d, h->product);
    b->drop(d, h->down);
    b->drop(d, h->up);
    b->drop(d, h->add);
    b->release(d, h->norm);
    free(h->base);
    free(h->scale);
    *h = (struct sh_hyper){0};
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* The matrix of n x n numbers, rows or columns (`step` 1 or n) divided by their sums. */
static void divide(float *c, size_t n, size_t step, float eps)
{
    for (size_t i = 0; i < n; i++) {
        float *x = c + (step == 1 ? i * n : i), sum = eps;
        for (size_t k = 0; k < n; k++)
            sum += x[k * step];
        for (size_t k = 0; k < n; k++)
            x[k * step] /= sum;
    }
}

/* From n x n products to what mixes the streams. */
static void balance(float *c, const struct sh_streams *s, const float *product, const float *base, float scale)
{
    size_t n = (size_t)s->n;
    for (size_t j = 0; j < n; j++) {
        float *row = c + j * n, most = -INFINITY, sum = 0;
        for (size_t k = 0; k < n; k++)
            most = fmaxf(most, row[k] = product[j * n + k] * scale + base[j * n + k]);
        for (size_t k = 0; k < n; k++)
            sum += row[k] = expf(row[k] - most);
        for (size_t k = 0; k < n; k++)
            row[k] = row[k] / sum + s->least;
    }
    divide(c, n, n, s->least);
    for (int i = 1; i < s->rounds; i++) {
        divide(c, n, 1, s->least);
        divide(c, n, n, s->least);
    }
}

/* From products [rows, n or SH_DIM_HYPER] to weights: [rows, n] of the sum, then [n, rows] of what is added, and
 * [n (of), n (to), rows] of what mixes the streams, without the streams themselves: C less the unit matrix. */
static float *weigh(const struct sh_hyper *y, const struct sh_streams *s, const float *product, int rows, int both)
{
    size_t n = (size_t)s->n, m = (size_t)rows, wide = both ? (size_t)sh_hyper_weights(s) : n;
    float *weight = xmalloc(m * wide * sizeof *weight), *added = weight + m * n, *c = xmalloc(n * n * sizeof *c);
    for (size_t row = 0; row < m; row++) {
        const float *x = product + row * wide;
        for (size_t i = 0; i < n; i++)
            weight[row * n + i] = sigmoid(x[i] * y->scale[0] + y->base[i]) + s->least;
        for (size_t i = 0; i < n && both; i++)
            added[i * m + row] = s->most * sigmoid(x[n + i] * y->scale[1] + y->base[n + i]) + s->least_added;
        if (!both || !s->rounds)
            continue;
        balance(c, s, x + 2 * n, y->base + 2 * n, y->scale[2]);
        for (size_t i = 0; i < n * n; i++)
            added[(n + i) * m + row] = c[i] - (i / n == i % n ? 1 : 0);
    }
    free(c);
    return weight;
}

struct sh_hyper_place sh_hyper_place(const struct sh_layer *l, const struct sh_activations *a)
{
    return (struct sh_hyper_place){.b = l->b, .d = l->d, .arch = a->arch, .wide = a->stream_was,
                                   .share = a->stream_share, .mix = a->stream_mix, .low = a->stream_low};
}

void sh_hyper_join(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat streams,
                   int both)
{
    const struct sh_backend *b = p->b;
    if (y->down) {
        sh_mixer_join(y, p, out, streams);
        return;
    }
    int n = p->arch->streams.n, wide = both ? sh_hyper_weights(&p->arch->streams) : n;
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
    const struct sh_hyper_place p = sh_hyper_place(l, a);
    sh_hyper_join(&l->hyper[is_feed], &p, h, sh_layer_part(c, hidden, rows, 0, c->streams.n * c->d_model), 1);
    return h;
}

/* What the streams were, times the share of each in each, is added to them. */
static void mix(const struct sh_layer *l, const struct sh_activations *a, int rows, const float *share)
{
    const struct sh_arch *c = a->arch;
    int n = c->streams.n, d = c->d_model;
    struct sh_mat all = sh_layer_part(c, a->hidden, rows, 0, n * d), was = sh_dense(a->stream_was, SH_F32, rows, n * d);
    l->b->cast(l->d, was, all);
    for (int i = 0; i < n * n; i++) {
        struct sh_scatter add = {.out = sh_columns(all, i % n * d, d), .x = sh_columns(was, i / n * d, d),
                                 .share = share + (size_t)i * (size_t)rows, .by = 1};
        l->b->scatter(l->d, &add);
    }
}

void sh_hyper_add(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat block)
{
    const struct sh_arch *c = a->arch;
    size_t weights = (size_t)block.rows * (size_t)c->streams.n;
    const float *weight = (const float *)a->stream_share + weights;
    if (c->streams.rounds)
        mix(l, a, block.rows, weight + weights);
    for (int i = 0; i < c->streams.n; i++) {
        struct sh_mat stream = sh_layer_part(c, a->hidden, block.rows, (size_t)i * (size_t)c->d_model, c->d_model);
        struct sh_scatter add = {.out = stream, .x = block, .share = weight + (size_t)i * (size_t)block.rows,
                                 .by = c->streams.rank ? 2 : 1};
        l->b->scatter(l->d, &add);
    }
}
