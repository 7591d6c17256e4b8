/* SPDX-License-Identifier: Apache-2.0 */
/* The output head (layer.h). Rows are computed in blocks, so that a large vocabulary needs little memory. Each block
 * reads the whole output matrix, most of what a decoding step of a small batch reads; on a device with its own memory
 * blocks are larger: 256 rows of 131072 numbers. The head of ModernBERT's decoder begins with a dense layer: the last
 * product reads norm(act(W x + b)), where x is what the final norm gives. */
#include "src/model/layers/layer_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum {
    HOST_NUMBERS = 1 << 22,             /* logits at once: where device memory is the host's,     */
    OWN_NUMBERS = 1 << 25,              /* and where it is the device's own; of what is left ...  */
    OWN_SHARE = 8,                      /* ... no more than an eighth, unless that is less than the host's */
    MOST_ROWS = 256
};

#define NEVER (-1e30f)                  /* a logit whose probability is 0                         */

struct sh_head {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct sh_arch *arch;
    enum sh_type dtype;
    struct sh_weight *out, *matrix;                     /* out: project_out; NULL: none           */
    struct sh_weight *dense;                            /* NULL: no dense layer                   */
    float *factor;                                      /* of each logit (ngpt.c); NULL: none     */
    float *dense_b, *dense_norm_w, *dense_norm_b;
    void *dense_y;                                      /* [rows, d_model] f32                    */
    struct sh_weight *stream[3];                        /* of further streams; NULL: none         */
    void *one, *all;                                    /* [rows, d_model] f32, where there are several */
    struct sh_hyper hyper;                              /* what joins streams; none: they are added up */
    void *wide, *share;                                 /* of that: [rows, streams * d_model], [rows, streams] f32 */
    void *mix, *low;                                    /* … like wide; [rows, streams.rank]      */
    float *norm_w, *norm_b, *bias;                      /* of the final norm; of the head         */
    int rows;                                           /* of a block                             */
    struct sh_best *best;                               /* device, [best_rows]                    */
    int best_rows;
    void *x, *narrow, *logits;                          /* [rows, d_model], [rows, d_embed] dtype; [rows, vocab] f32 */
};

/* Logits that may lie on the device at once. */
static size_t block_numbers(const struct sh_head *h)
{
    struct sh_props props;
    h->b->props(h->d, &props);
    size_t share = props.memory_bytes / OWN_SHARE / sizeof(float);
    if (props.is_host || (props.memory_bytes && share < HOST_NUMBERS))
        return HOST_NUMBERS;
    return props.memory_bytes && share < OWN_NUMBERS ? share : OWN_NUMBERS;
}

static int joins(const struct sh_head *h)
{
    return h->hyper.product || h->hyper.down;
}

static int make_room(struct sh_head *h, int most, struct sh_err *e)
{
    const struct sh_arch *c = h->arch;
    int rows = (int)(block_numbers(h) / (size_t)c->n_vocab);
    most = most < MOST_ROWS ? most : MOST_ROWS;
    h->rows = rows < 1 ? 1 : rows > most ? most : rows;
    size_t n = (size_t)h->rows, operand = sh_type_bytes(h->dtype);
    if (!(h->x = h->b->alloc(h->d, n * (size_t)c->d_model * operand, e)) ||
        !(h->logits = h->b->alloc(h->d, n * (size_t)c->n_vocab * sizeof(float), e)))
        return -1;
    if (c->streams.n > 1 && (!(h->one = h->b->alloc(h->d, n * (size_t)c->d_model * sizeof(float), e)) ||
                             !(h->all = h->b->alloc(h->d, n * (size_t)c->d_model * sizeof(float), e))))
        return -1;
    size_t streams = joins(h) ? (size_t)c->streams.n : 0, rank = (size_t)c->streams.rank;
    if (rank && (!(h->mix = h->b->alloc(h->d, n * streams * (size_t)c->d_model * sizeof(float), e)) ||
                 !(h->low = h->b->alloc(h->d, n * rank * sizeof(float), e))))
        return -1;
    if (streams && (!(h->wide = h->b->alloc(h->d, n * streams * (size_t)c->d_model * sizeof(float), e)) ||
                    !(h->share = h->b->alloc(h->d, n * streams * sizeof(float), e))))
        return -1;
    if (h->dense && !(h->dense_y = h->b->alloc(h->d, n * (size_t)c->d_model * sizeof(float), e)))
        return -1;
    if (h->out && !(h->narrow = h->b->alloc(h->d, n * (size_t)c->d_embed * operand, e)))
        return -1;
    return 0;
}

/* What few models have. */
static int load_rest(struct sh_head *h, struct sh_model *m, struct sh_err *e)
{
    return sh_ngpt_factor(h->b, h->d, m, SH_LOGIT_FACTOR, -1, &h->factor, e) ||
           sh_layer_matrix(h->b, h->d, m, SH_HEAD_DENSE_W, -1, h->dtype, &h->dense, e) ||
           sh_layer_vector(h->b, h->d, m, SH_HEAD_DENSE_B, -1, &h->dense_b, e) ||
           sh_layer_vector(h->b, h->d, m, SH_HEAD_NORM_W, -1, &h->dense_norm_w, e) ||
           sh_layer_vector(h->b, h->d, m, SH_HEAD_NORM_B, -1, &h->dense_norm_b, e) ? -1 : 0;
}

struct sh_head *sh_head_new(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_type dtype,
                            int rows, struct sh_err *e)
{
    struct sh_head *h = xcalloc(1, sizeof *h);
    h->b = b;
    h->d = d;
    h->arch = sh_model_arch(m);
    h->dtype = dtype;
    if (sh_layer_vector(b, d, m, SH_FINAL_NORM_W, -1, &h->norm_w, e) ||
        sh_layer_vector(b, d, m, SH_FINAL_NORM_B, -1, &h->norm_b, e) ||
        sh_layer_vector(b, d, m, SH_HEAD_B, -1, &h->bias, e) ||
        sh_layer_matrix(b, d, m, SH_PROJ_OUT, -1, dtype, &h->out, e) || load_rest(h, m, e) ||
        sh_hyper_load(b, d, m, SH_HYPER_HEAD_W, -1, &h->hyper, e) ||
        sh_mixer_load(b, d, m, SH_MIXER_HEAD_NORM_W, -1, &h->hyper, e) ||
        sh_layer_matrix(b, d, m, SH_STREAM_OUT_1, -1, SH_F32, &h->stream[0], e) ||
        sh_layer_matrix(b, d, m, SH_STREAM_OUT_2, -1, SH_F32, &h->stream[1], e) ||
        sh_layer_matrix(b, d, m, SH_STREAM_OUT_3, -1, SH_F32, &h->stream[2], e) ||
        sh_layer_matrix(b, d, m, SH_HEAD, -1, dtype, &h->matrix, e) || make_room(h, rows, e)) {
        sh_head_free(h);
        return NULL;
    }
    if (b->settle && h->matrix && b->settle(d, h->matrix))
        sh_model_drop_numbered(m, sh_model_arch(m)->flags & SH_TIED_HEAD ? SH_TOK_EMBED : SH_HEAD, -1, 0);
    return h;
}

void sh_head_free(struct sh_head *h)
{
    if (!h)
        return;
    h->b->drop(h->d, h->out);
    h->b->drop(h->d, h->matrix);
    h->b->drop(h->d, h->dense);
    h->b->release(h->d, h->factor);
    h->b->release(h->d, h->dense_b);
    h->b->release(h->d, h->dense_norm_w);
    h->b->release(h->d, h->dense_norm_b);
    h->b->release(h->d, h->dense_y);
    for (int i = 0; i < 3; i++)
        h->b->drop(h->d, h->stream[i]);
    sh_hyper_drop(h->b, h->d, &h->hyper);
    h->b->release(h->d, h->wide);
    h->b->release(h->d, h->share);
    h->b->release(h->d, h->mix);
    h->b->release(h->d, h->low);
    h->b->release(h->d, h->one);
    h->b->release(h->d, h->all);
    h->b->release(h->d, h->norm_w);
    h->b->release(h->d, h->norm_b);
    h->b->release(h->d, h->bias);
    h->b->release(h->d, h->x);
    h->b->release(h->d, h->narrow);
    h->b->release(h->d, h->logits);
    h->b->release(h->d, h->best);
    free(h);
}

/* The mean of all streams, each but the first maybe through a matrix and as long as that; or a sum (hyper.c). */
static struct sh_mat join_streams(struct sh_head *h, void *hidden, int rows)
{
    const struct sh_arch *c = h->arch;
    struct sh_mat first = sh_layer_part(c, hidden, rows, 0, c->d_model);
    struct sh_mat one = sh_dense(h->one, SH_F32, rows, c->d_model), all = one;
    all.at = h->all;
    struct sh_scatter add = {.out = all, .x = one, .by = 1};
    struct sh_scatter shrink = {.out = all, .x = all, .by = 1 / (float)c->streams.n - 1};
    const struct sh_hyper_place p = {.b = h->b, .d = h->d, .arch = c, .wide = h->wide, .share = h->share,
                                     .mix = h->mix, .low = h->low};
    if (joins(h)) {
        sh_hyper_join(&h->hyper, &p, all, sh_layer_part(c, hidden, rows, 0, c->streams.n * c->d_model), 0);
        return all;
    }
    h->b->cast(h->d, all, first);
    for (int i = 1; i < c->streams.n; i++) {
        struct sh_mat from = sh_layer_part(c, hidden, rows, (size_t)i * (size_t)c->d_model, c->d_model);
        add.x = c->streams.hyper ? from : one;
        if (!c->streams.hyper)
            sh_streams_match(h->b, h->d, h->stream[i - 1], from, first, one);
        h->b->scatter(h->d, &add);
    }
    h->b->scatter(h->d, &shrink);
    return all;
}

/* x = norm(act(W x + b)) */
static void run_dense(struct sh_head *h, struct sh_mat x)
{
    const struct sh_arch *c = h->arch;
    struct sh_linear dense = {.out = sh_dense(h->dense_y, SH_F32, x.rows, c->d_model), .x = x, .w = h->dense,
                              .bias = h->dense_b, .act = c->dense_act};
    struct sh_norm norm = {.out = x, .x = dense.out, .weight = h->dense_norm_w, .bias = h->dense_norm_b,
                           .eps = c->norm_eps, .kind = c->norm};
    h->b->linear(h->d, &dense);
    h->b->norm(h->d, &norm);
}

/* One block's logits on the device. */
static void queue(struct sh_head *h, const void *hidden, int first, int rows)
{
    const struct sh_arch *c = h->arch;
    char *at = (char *)(uintptr_t)hidden + (size_t)first * sh_arch_row(c) * sizeof(float);
    struct sh_mat in = c->streams.n > 1 ? join_streams(h, at, rows) : sh_layer_part(c, at, rows, 0, c->d_model);
    struct sh_mat x = sh_dense(h->x, h->dtype, rows, c->d_model);
    struct sh_norm norm = {.out = x, .x = in, .weight = h->norm_w, .bias = h->norm_b,
                           .eps = c->final_eps > 0 ? c->final_eps : c->norm_eps,
                           .kind = c->norm};
    if (c->flags & SH_HAS_FINAL_NORM)
        h->b->norm(h->d, &norm);
    else
        h->b->cast(h->d, x, in);
    if (h->dense)
        run_dense(h, x);
    if (h->out) {
        struct sh_linear out = {.out = sh_dense(h->narrow, h->dtype, rows, c->d_embed), .x = x, .w = h->out};
        h->b->linear(h->d, &out);
        x = out.out;
    }
    struct sh_linear all = {.out = sh_dense(h->logits, SH_F32, rows, sh_dim_size(c, SH_DIM_OUT)), .x = x,
                            .w = h->matrix, .bias = h->bias};
    struct sh_norm scale = {.out = all.out, .x = all.out, .weight = h->factor, .kind = SH_NORM_SCALE};
    h->b->linear(h->d, &all);
    if (h->factor)
        h->b->norm(h->d, &scale);
}

/* Rows of `out` logits become rows of `vocab`: tokens without a row of the head never come next. */
static void spread(float *logits, int rows, size_t out, size_t vocab)
{
    for (size_t i = (size_t)rows; i-- > 0 && out < vocab;) {
        memmove(logits + i * vocab, logits + i * out, out * sizeof *logits);
        for (size_t k = out; k < vocab; k++)
            logits[i * vocab + k] = NEVER;
    }
}

int sh_head_run(struct sh_head *h, const void *hidden, int first, int rows, float *logits, struct sh_err *e)
{
    const struct sh_arch *c = h->arch;
    size_t vocab = (size_t)c->n_vocab, out = (size_t)sh_dim_size(c, SH_DIM_OUT);
    for (int i = 0; i < rows; i += h->rows) {
        int n = rows - i < h->rows ? rows - i : h->rows;
        float *to = logits + (size_t)i * vocab;
        queue(h, hidden, first + i, n);
        h->b->get(h->d, to, h->logits, (size_t)n * out * sizeof *to);
        if (h->b->sync(h->d, e))
            return -1;
        for (size_t k = 0; c->logit_scale < 1 || c->logit_scale > 1 ? k < (size_t)n * out : 0; k++)
            to[k] *= c->logit_scale;
        for (size_t k = 0; c->head_softcap > 0 && k < (size_t)n * out; k++)
            to[k] = c->head_softcap * tanhf(to[k] / c->head_softcap);
        spread(to, n, out, vocab);
        for (size_t k = 0; k < (size_t)n * (size_t)c->n_mute; k++)
            to[k / (size_t)c->n_mute * vocab + (size_t)c->mute + k % (size_t)c->n_mute] = NEVER;
    }
    return 0;
}

int sh_head_rows(const struct sh_head *h)
{
    return h->rows;
}

/* A soft cap or a factor, rounded, can make numbers equal that were not; tokens that never come next could be best. */
int sh_head_can_choose(const struct sh_head *h)
{
    int scaled = h->arch->logit_scale < 1 || h->arch->logit_scale > 1;
    return h->b->best && !(h->arch->head_softcap > 0) && !scaled && !h->arch->n_mute;
}

int sh_head_choose(struct sh_head *h, const void *hidden, int first, int rows, struct sh_best *out, struct sh_err *e)
{
    if (rows > h->best_rows) {
        h->b->release(h->d, h->best);
        h->best_rows = 0;
        if (!(h->best = h->b->alloc(h->d, (size_t)rows * sizeof *h->best, e)))
            return -1;
        h->best_rows = rows;
    }
    for (int i = 0, n; i < rows; i += n) {
        n = rows - i < h->rows ? rows - i : h->rows;
        queue(h, hidden, first + i, n);
        h->b->best(h->d, h->best + i, sh_dense(h->logits, SH_F32, n, sh_dim_size(h->arch, SH_DIM_OUT)));
    }
    h->b->get(h->d, out, h->best, (size_t)rows * sizeof *out);
    return h->b->sync(h->d, e);
}
