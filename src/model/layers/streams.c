/* SPDX-License-Identifier: Apache-2.0 */
/* What Gemma 3n and 4 add to a layer. Several residual streams (AltUp, arXiv 2301.13310): each layer predicts all
 * streams with weights that the token determines, works on one, and corrects all by the result. A low-rank path next to
 * attention (LAuReL, arXiv 2411.07501). An embedding of the token that is the layer's own. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

int sh_streams_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    float *scale = NULL;
    int bad = sh_hyper_load(l->b, l->d, m, SH_HYPER_ATTN_W, l->index, &l->hyper[0], e) ||
              sh_hyper_load(l->b, l->d, m, SH_HYPER_MLP_W, l->index, &l->hyper[1], e) ||
              sh_mixer_load(l->b, l->d, m, SH_MIXER_ATTN_NORM_W, l->index, &l->hyper[0], e) ||
              sh_mixer_load(l->b, l->d, m, SH_MIXER_MLP_NORM_W, l->index, &l->hyper[1], e) ||
              sh_layer_read(l, m, SH_ALTUP_PREDICT, &l->predict, e) ||
              sh_layer_read(l, m, SH_ALTUP_CORRECT, &l->correct, e) ||
              sh_layer_read(l, m, SH_LAYER_SCALE, &scale, e);
    l->scale = scale ? scale[0] : 1;
    free(scale);
    return bad ? -1 : 0;
}

void sh_streams_drop(struct sh_layer *l)
{
    for (int i = 0; i < 2; i++)
        sh_hyper_drop(l->b, l->d, &l->hyper[i]);
    free(l->predict);
    free(l->correct);
}

/* ---- parts ---- */

struct sh_mat sh_layer_part(const struct sh_arch *c, void *hidden, int rows, size_t at, int cols)
{
    return (struct sh_mat){(float *)hidden + at, SH_F32, rows, cols, sh_arch_row(c)};
}

static struct sh_mat stream(const struct sh_arch *c, void *hidden, int rows, int i)
{
    return sh_layer_part(c, hidden, rows, (size_t)i * (size_t)c->d_model, c->d_model);
}

static void add(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, const float *share, float by)
{
    struct sh_scatter a = {.out = out, .x = x, .share = share, .by = by};
    l->b->scatter(l->d, &a);
}

/* ---- several streams ---- */

/* What of each stream's coefficients a token asks for, [rows, n], for free(): tanh of a product of x, normed. */
static float *modalities(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    size_t n = (size_t)x.rows * (size_t)c->streams.n;
    float *at = xcalloc(n, sizeof *at);
    struct sh_mat normed = sh_dense(a->x, a->dtype, x.rows, c->d_model);
    struct sh_mat out = sh_dense(a->stream_share, SH_F32, x.rows, c->streams.n);
    sh_layer_norm(l, c, normed, x, SH_ALTUP_NORM_W, SH_N_ROLE, 0);
    sh_layer_linear(l, out, normed, SH_ALTUP_ROUTER_W, SH_N_ROLE, SH_ACT_NONE, 0);
    l->b->get(l->d, at, out.at, n * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = tanhf(at[i] / (float)c->d_model);
    return at;
}

/* Shares [n_share, rows] on the device: plus + matrix [n_share, n] times what each token asks for. */
static const float *shares(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x,
                           const float *matrix, int n_share, float plus)
{
    int n = a->arch->streams.n;
    float *ask = modalities(l, a, x), *share = xmalloc((size_t)n_share * (size_t)x.rows * sizeof *share);
    for (int i = 0; i < n_share; i++)
        for (int row = 0; row < x.rows; row++) {
            float sum = 0;
            for (int k = 0; k < n; k++)
                sum += matrix[i * n + k] * ask[row * n + k];
            share[(size_t)i * (size_t)x.rows + (size_t)row] = plus + sum;
        }
    l->b->put(l->d, a->stream_share, share, (size_t)n_share * (size_t)x.rows * sizeof *share);
    free(ask);
    free(share);
    return a->stream_share;
}

/* Stream i += the sum over k of share[i, k] * stream k as it was. */
static void predict(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows)
{
    const struct sh_arch *c = a->arch;
    int n = c->streams.n;
    struct sh_mat was = sh_dense(a->stream_was, SH_F32, rows, n * c->d_model);
    const float *share = shares(l, a, stream(c, hidden, rows, c->streams.active), l->predict, n * n, 0);
    l->b->cast(l->d, was, sh_layer_part(c, hidden, rows, 0, n * c->d_model));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            struct sh_mat from = was;
            from.at = (float *)was.at + k * c->d_model;
            from.cols = c->d_model;
            add(l, stream(c, hidden, rows, i), from, share + (size_t)(i * n + k) * (size_t)rows, 1);
        }
}

struct sh_mat sh_streams_begin(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows)
{
    const struct sh_arch *c = a->arch;
    if (c->streams.hyper)
        return sh_hyper_begin(l, a, hidden, rows, 0);
    if (c->streams.n < 2)
        return stream(c, hidden, rows, 0);
    struct sh_mat h = sh_dense(a->stream_h, SH_F32, rows, c->d_model);
    predict(l, a, hidden, rows);
    l->b->cast(l->d, h, stream(c, hidden, rows, c->streams.active));
    return h;
}

void sh_streams_undo(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows)
{
    const struct sh_arch *c = a->arch;
    int cols = c->streams.n * c->d_model;
    if (c->streams.n > 1 && !c->streams.hyper)
        l->b->cast(l->d, sh_layer_part(c, hidden, rows, 0, cols), sh_dense(a->stream_was, SH_F32, rows, cols));
}

/* All streams += their shares of what the active one has changed by. */
static void correct(const struct sh_layer *l, const struct sh_activations *a, void *hidden, struct sh_mat h)
{
    const struct sh_arch *c = a->arch;
    const float *share = shares(l, a, h, l->correct, c->streams.n, 1);
    add(l, h, stream(c, hidden, h.rows, c->streams.active), NULL, -1);
    for (int i = 0; i < c->streams.n; i++)
        add(l, stream(c, hidden, h.rows, i), h, share + (size_t)i * (size_t)h.rows, 1);
}

/* ---- a layer's own embedding of a token ---- */

/* block = the norm of W (act(G x) * the embedding) */
static struct sh_mat own_embedding(const struct sh_layer *l, const struct sh_activations *a, const void *hidden,
                                   struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    int d = c->streams.d_own;
    struct sh_mat block = sh_dense(a->block, SH_F32, x.rows, c->d_model);
    struct sh_gate gate = {.out = sh_dense(a->own_y, a->dtype, x.rows, d), .act = c->act,
                           .gate = sh_dense(a->own_gate, SH_F32, x.rows, d),
                           .up = sh_dense(a->own_in, SH_F32, x.rows, d)};
    l->b->cast(l->d, gate.up, sh_layer_part(c, (void *)(uintptr_t)hidden, x.rows, sh_arch_own_at(c, l->index), d));
    sh_layer_linear(l, gate.gate, x, SH_OWN_GATE_W, SH_N_ROLE, SH_ACT_NONE, 0);
    l->b->gate(l->d, &gate);
    sh_layer_linear(l, block, gate.out, SH_OWN_OUT_W, SH_N_ROLE, SH_ACT_NONE, 0);
    sh_layer_norm(l, c, block, block, SH_OWN_POST_W, SH_N_ROLE, 0);
    return block;
}

void sh_streams_end(const struct sh_layer *l, const struct sh_activations *a, void *hidden, struct sh_mat h)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat x = sh_dense(a->x, a->dtype, h.rows, c->d_model);
    if (c->streams.hyper)
        return;
    if (c->streams.n > 1) {
        struct sh_norm scaled = {.out = x, .x = stream(c, hidden, h.rows, c->streams.active), .kind = SH_NORM_SCALE,
                                 .weight = c->streams.scales ? l->vector[SH_ALTUP_SCALE] : NULL};
        correct(l, a, hidden, h);
        l->b->norm(l->d, &scaled);
        struct sh_mat block = own_embedding(l, a, hidden, x);
        for (int i = 1; i < c->streams.n; i++)
            add(l, stream(c, hidden, h.rows, i), block, NULL, 1);
    } else if (c->streams.d_own) {
        l->b->cast(l->d, x, h);
        add(l, h, own_embedding(l, a, hidden, x), NULL, 1);
    }
    if (l->scale < 1 || l->scale > 1)
        add(l, h, h, NULL, l->scale - 1);
    sh_loop_end(l, a, hidden, h);
}

/* ---- the streams' beginning and end ---- */

static float mean_square(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return (float)(sum / n);
}

void sh_streams_match(const struct sh_backend *b, struct sh_dev *d, const struct sh_weight *w, struct sh_mat from,
                      struct sh_mat like, struct sh_mat to)
{
    size_t n = (size_t)to.rows * (size_t)to.cols;
    float *x = xmalloc(2 * n * sizeof *x), *y = x + n;
    struct sh_linear a = {.out = to, .x = from, .w = w};
    b->cast(d, to, like);
    b->get(d, y, to.at, n * sizeof *y);
    b->linear(d, &a);
    b->get(d, x, to.at, n * sizeof *x);
    for (int row = 0; row < to.rows; row++) {
        float *own = x + (size_t)row * (size_t)to.cols;
        float by = sqrtf(mean_square(y + (size_t)row * (size_t)to.cols, to.cols)) /
                   sqrtf(fmaxf(mean_square(own, to.cols), 1e-5f));
        for (int i = 0; i < to.cols; i++)
            own[i] *= by;
    }
    b->put(d, to.at, x, n * sizeof *x);
    free(x);
}

/* ---- the path next to attention ---- */

void sh_laurel_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat narrow = sh_dense(a->laurel_y, a->dtype, x.rows, c->streams.laurel);
    struct sh_mat out = sh_dense(a->laurel, SH_F32, x.rows, c->d_model), block = out;
    block.at = a->block;
    sh_layer_linear(l, narrow, x, SH_LAUREL_LEFT_W, SH_N_ROLE, SH_ACT_NONE, 0);
    sh_layer_linear(l, block, narrow, SH_LAUREL_RIGHT_W, SH_N_ROLE, SH_ACT_NONE, 0);
    l->b->cast(l->d, out, x);
    sh_layer_norm(l, c, out, block, SH_LAUREL_NORM_W, SH_N_ROLE, 1);
}

/* (h + what the path gave) / sqrt(2) */
void sh_laurel_join(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h)
{
    add(l, h, sh_dense(a->laurel, SH_F32, h.rows, h.cols), NULL, 1);
    add(l, h, h, NULL, sqrtf(0.5f) - 1);
}

/* ---- lent keys and values ---- */

void sh_streams_exchange(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend)
{
    const struct sh_arch *c = a->arch;
    const struct sh_mat *own[] = {&attend->k, &attend->v};
    size_t at = sh_arch_lent_at(c, l->index);
    for (int i = 0; i < 2; i++, at += (size_t)attend->k.cols) {
        struct sh_mat there = sh_layer_part(c, a->hidden, own[i]->rows, at, own[i]->cols);
        if (sh_arch_borrows(c, l->index))
            l->b->cast(l->d, *own[i], there);
        else if (sh_arch_lends(c, l->index))
            l->b->cast(l->d, there, *own[i]);
    }
}
