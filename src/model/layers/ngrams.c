/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings of n-grams, as layers of Qwen4-Exp have them (per-layer embeddings; src/model/ngrams.h says which rows of
 * the table a token has). Let e be a token's rows, one after another. Stream i of n is gated by g_i, the sigmoid of the
 * product of the normed stream and the normed key K_i e, over sqrt(d_model), whose root is taken before: its sign times
 * sqrt(max(|x|, 1e-6)). What is added to the stream is g_i V e, and that normed, after a convolution with SiLU over
 * tokens that are n-gram lengths apart. The table stays in the file: only the rows of tokens that occur are read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"
#include "src/model/ngrams.h"

struct sh_layer_ngrams {
    struct sh_ngram_hash hash;
    int n_part, *first;                 /* [n_part + 1]: the first row of each part of the table  */
    int taps;                           /* of the convolution, zeros between others included      */
    float *conv;                        /* device, [streams * d_model, taps]                      */
    struct sh_weight *ones;             /* [1, d_model]                                           */
    int failed;                         /* a row could not be read: error                         */
    struct sh_err error;
};

/* A convolution over tokens that are `n` apart is one over all, with zeros. */
static int load_conv(struct sh_layer *l, struct sh_model *m, struct sh_layer_ngrams *g, struct sh_err *e)
{
    const struct sh_ngrams *c = &sh_model_arch(m)->ngrams;
    float *stored;
    if (sh_layer_read(l, m, SH_NGRAM_CONV, &stored, e))
        return -1;
    size_t channels = (size_t)sh_dim_size(sh_model_arch(m), SH_DIM_HYPER_IN), taps = (size_t)g->taps;
    float *all = xcalloc(channels * taps, sizeof *all);
    for (size_t i = 0; i < channels; i++)
        for (int k = 0; k < c->kernel; k++)
            all[i * taps + (size_t)(k * c->n)] = stored[i * (size_t)c->kernel + (size_t)k];
    g->conv = l->b->vector(l->d, all, channels * taps, e);
    free(all);
    free(stored);
    return g->conv ? 0 : -1;
}

static int load_ones(struct sh_layer *l, int n, struct sh_layer_ngrams *g, struct sh_err *e)
{
    float *ones = xmalloc((size_t)n * sizeof *ones);
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    l->b->weight_bits(l->d, 16);
    g->ones = l->b->weight(l->d, ones, SH_F32, 1, n, SH_F32, e);
    l->b->weight_bits(l->d, l->weight_bits);
    free(ones);
    return g->ones ? 0 : -1;
}

int sh_ngrams_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    const struct sh_ngram_layer *at = sh_arch_ngrams(c, l->index);
    if (!at)
        return 0;
    struct sh_layer_ngrams *g = l->ngrams = xcalloc(1, sizeof *g);
    sh_ngrams_hash(&c->ngrams, at, c->n_vocab, &g->hash);
    g->n_part = sh_model_count(m, SH_NGRAM_EMBED);
    g->first = xcalloc((size_t)g->n_part + 1, sizeof *g->first);
    for (int i = 0; i < g->n_part; i++)
        g->first[i + 1] = g->first[i] + sh_model_numbered_rows(m, SH_NGRAM_EMBED, l->index, i);
    g->taps = (c->ngrams.kernel - 1) * c->ngrams.n + 1;
    return load_conv(l, m, g, e) || load_ones(l, c->d_model, g, e) ? -1 : 0;
}

void sh_ngrams_drop(struct sh_layer *l)
{
    struct sh_layer_ngrams *g = l->ngrams;
    if (!g)
        return;
    l->b->release(l->d, g->conv);
    l->b->drop(l->d, g->ones);
    free(g->first);
    free(g);
}

int sh_ngrams_failed(const struct sh_layer *l, struct sh_err *e)
{
    if (!l->ngrams || !l->ngrams->failed)
        return 0;
    *e = l->ngrams->error;
    return -1;
}

/* ---- the rows of the table ---- */

/* Under the lock of the model. */
static int read_row(const struct sh_layer *l, int row, float *out, struct sh_err *e)
{
    const struct sh_layer_ngrams *g = l->ngrams;
    int low = 0, high = g->n_part - 1;
    struct sh_tensor t;
    while (low < high) {                /* the last part that begins at or before the row, none empty */
        int middle = low + (high - low + 1) / 2;
        if (g->first[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    while (g->first[low + 1] <= row)
        low++;
    if (sh_model_numbered(l->m, SH_NGRAM_EMBED, l->index, low, &t, e))
        return -1;
    size_t from = (size_t)(row - g->first[low]) * (size_t)t.cols;
    for (int i = 0; i < t.cols; i++)
        if (!isfinite(out[i] = sh_tensor_element(&t, from + (size_t)i)))
            return sh_fail(e, "tensor %s: row %d, column %d is %g, expected a finite number", t.name,
                           row - g->first[low], i, (double)out[i]);
    return 0;
}

/* The rows of n tokens, into out [n, d]. recent: the tokens before, the last one first; afterwards those before the
 * next token. */
static void read_rows(const struct sh_layer *l, const float *token, int n, int *recent, float *out)
{
    struct sh_layer_ngrams *g = l->ngrams;
    int d = sh_dim_size(sh_model_arch(l->m), SH_DIM_NGRAM_HEAD), row[SH_NGRAM_HEADS], all[SH_NGRAM_MOST];
    size_t before = (size_t)(g->hash.n - 1) * sizeof *recent;
    for (int t = 0; t < n; t++) {
        all[0] = (int)token[t];
        memcpy(all + 1, recent, before);
        memcpy(recent, all, before);
        sh_ngrams_rows(&g->hash, all, row);
        for (int k = 0; k < g->hash.heads && !g->failed; k++, out += d)
            g->failed = read_row(l, row[k], out, &g->error) != 0;
    }
}

/* The texts of a call, and where the layer keeps each text's state of the convolution and last tokens: NULL, they begin
 * here. */
struct texts { int n; const int *start; float *state; size_t step, conv; };

/* e [rows, d] of all tokens, as operands. */
static struct sh_mat look_up(const struct sh_layer *l, const struct sh_activations *a, const void *hidden,
                             const struct texts *t)
{
    const struct sh_arch *c = a->arch;
    int rows = t->start[t->n], n = c->ngrams.n - 1, d = c->ngrams.d, recent[SH_NGRAM_MOST];
    float *token = xmalloc(((size_t)rows + SH_NGRAM_MOST) * sizeof *token), *last = token + rows;
    float *all = xcalloc((size_t)rows * (size_t)d, sizeof *all);
    struct sh_mat ids = sh_dense(a->stream_share, SH_F32, rows, 1);
    struct sh_mat e = sh_dense(a->ngram, SH_F32, rows, d), x = sh_dense(a->ngram_x, a->dtype, rows, d);
    l->b->cast(l->d, ids, sh_layer_part(c, (void *)(uintptr_t)hidden, rows, sh_arch_token_at(c), 1));
    l->b->get(l->d, token, ids.at, (size_t)rows * sizeof *token);
    sh_model_enter(l->m);
    for (int s = 0; s < t->n; s++) {
        float *kept = t->state ? t->state + (size_t)s * t->step + t->conv : NULL;
        int first = t->start[s], many = t->start[s + 1] - first;
        memset(last, 0, (size_t)n * sizeof *last);
        if (!many)
            continue;
        if (kept)
            l->b->get(l->d, last, kept, (size_t)n * sizeof *last);
        for (int i = 0; i < n; i++)
            recent[i] = (int)last[i] - 1;
        read_rows(l, token + first, many, recent, all + (size_t)first * (size_t)d);
        for (int i = 0; i < n; i++)
            last[i] = (float)(recent[i] + 1);
        if (kept)
            l->b->put(l->d, kept, last, (size_t)n * sizeof *last);
    }
    sh_model_leave(l->m);
    l->b->put(l->d, e.at, all, (size_t)rows * (size_t)d * sizeof *all);
    l->b->cast(l->d, x, e);
    free(token);
    free(all);
    return x;
}

/* ---- what is added ---- */

static void put_gates(const struct sh_layer *l, struct sh_mat dots, float by)
{
    size_t n = (size_t)dots.rows;
    float *x = xmalloc(n * sizeof *x);
    l->b->get(l->d, x, dots.at, n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        float dot = x[i] * by, root = sqrtf(fmaxf(fabsf(dot), 1e-6f));
        x[i] = 1 / (1 + expf(dot > 0 ? -root : dot < 0 ? root : 0));
    }
    l->b->put(l->d, dots.at, x, n * sizeof *x);
    free(x);
}

/* g_i V e of all streams, in `wide`; `other` is scratch. */
static void gate_values(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat e,
                        struct sh_mat streams, const struct sh_hyper_place *p)
{
    int n = a->arch->streams.n, d = a->arch->d_model;
    struct sh_mat wide = sh_dense(p->wide, SH_F32, e.rows, n * d), other = sh_dense(p->mix, SH_F32, e.rows, n * d);
    struct sh_mat value = sh_dense(a->stream_h, SH_F32, e.rows, d);
    struct sh_gate product = {.out = wide, .gate = wide, .up = other};
    struct sh_linear dots = {.out = sh_dense(p->share, SH_F32, e.rows * n, 1), .w = l->ngrams->ones,
                             .x = sh_dense(wide.at, SH_F32, e.rows * n, d)};
    struct sh_gate gate = {.out = wide, .gate = sh_dense(p->share, SH_F32, e.rows, n), .up = wide};
    sh_layer_linear(l, wide, e, SH_NGRAM_KEY_W, SH_N_ROLE, SH_ACT_NONE, 0);
    sh_layer_linear(l, value, e, SH_NGRAM_VALUE_W, SH_N_ROLE, SH_ACT_NONE, 0);
    sh_mixer_norm(p, wide, wide, l->vector[SH_NGRAM_KEY_NORM_W]);
    l->b->cast(l->d, other, streams);
    sh_mixer_norm(p, other, other, l->vector[SH_NGRAM_QUERY_NORM_W]);
    l->b->gate(l->d, &product);
    l->b->linear(l->d, &dots);
    put_gates(l, dots.out, 1 / sqrtf((float)d));
    for (int i = 0; i < n; i++)
        l->b->cast(l->d, sh_columns(wide, i * d, d), value);
    l->b->gate(l->d, &gate);
}

static void convolve(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, const struct texts *t)
{
    size_t bytes = t->conv * sizeof(float);
    struct sh_conv conv = {.x = x, .weight = l->ngrams->conv, .act = SH_ACT_SILU, .kernel = l->ngrams->taps,
                           .n_seq = t->n, .start = t->start, .state = t->state, .state_step = t->step};
    if (t->state) {
        l->b->conv(l->d, &conv);
        return;
    }
    float *zeros = xcalloc(1, bytes + 1);
    for (int s = 0; s < t->n; s++) {
        conv.n_seq = 1;
        conv.start = t->start + s;
        conv.state = a->recur_state;
        l->b->put(l->d, conv.state, zeros, bytes);
        l->b->conv(l->d, &conv);
    }
    free(zeros);
}

void sh_ngrams_run(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int n_seq, const int *start,
                   float *state)
{
    const struct sh_arch *c = a->arch;
    size_t before = sh_arch_recurs(c, l->index) ? sh_recurrent_state(&c->recurrent) : 0;
    size_t width = (size_t)c->streams.n * (size_t)c->d_model;
    const struct texts t = {n_seq, start, state ? state + before : NULL, sh_arch_state(c, l->index),
                            (size_t)(l->ngrams->taps - 1) * width};
    const struct sh_hyper_place p = sh_hyper_place(l, a);
    struct sh_mat streams = sh_layer_part(c, hidden, start[n_seq], 0, (int)width);
    struct sh_mat wide = sh_dense(p.wide, SH_F32, streams.rows, streams.cols), normed = wide;
    struct sh_scatter add = {.out = streams, .x = wide, .by = 1};
    normed.at = p.mix;
    gate_values(l, a, look_up(l, a, hidden, &t), streams, &p);
    sh_mixer_norm(&p, normed, wide, l->vector[SH_NGRAM_CONV_NORM_W]);
    convolve(l, a, normed, &t);
    l->b->scatter(l->d, &add);
    add.x = normed;
    l->b->scatter(l->d, &add);
}
