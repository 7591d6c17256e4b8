/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to the input of layer 0 (layer.h). Rows are gathered on the host, straight from the mapped
 * checkpoint: only the pages of tokens that occur are ever read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layer.h"

/* to[cols] (+)= row of a table */
static int gather(const struct sh_tensor *t, int row, float *to, int add, struct sh_err *e)
{
    size_t at = (size_t)row * (size_t)t->cols;
    for (int i = 0; i < t->cols; i++) {
        float x = t->type == SH_F32   ? ((const float *)t->at)[at + (size_t)i]
                  : t->type == SH_F16 ? sh_f16_to_f32(((const uint16_t *)t->at)[at + (size_t)i])
                                      : sh_bf16_to_f32(((const uint16_t *)t->at)[at + (size_t)i]);
        if (!isfinite(x))
            return sh_fail(e, "tensor %s: row %d, column %d is %g, expected a finite number", t->name, row, i,
                           (double)x);
        to[i] = add ? to[i] + x : x;
    }
    return 0;
}

/* hidden [n, d_model] = embedded [n, d_embed] W^T */
static int project(const struct sh_backend *b, struct sh_dev *d, const struct sh_tensor *w, const float *embedded,
                   int n, float *hidden, struct sh_err *e)
{
    size_t in = (size_t)n * (size_t)w->cols * sizeof(float), out = (size_t)n * (size_t)w->rows * sizeof(float);
    if (sh_model_check_finite(w, e))
        return -1;
    struct sh_weight *weight = b->weight(d, w->at, w->type, w->rows, w->cols, SH_F32, e);
    void *x = weight ? b->alloc(d, in, e) : NULL, *y = x ? b->alloc(d, out, e) : NULL;
    int bad = !y;
    if (y) {
        b->put(d, x, embedded, in);
        struct sh_linear a = {.out = {y, SH_F32, n, w->rows, (size_t)w->rows},
                              .x = {x, SH_F32, n, w->cols, (size_t)w->cols}, .w = weight};
        b->linear(d, &a);
        b->get(d, hidden, y, out);
        bad = b->sync(d, e);
    }
    b->release(d, x);
    b->release(d, y);
    b->drop(d, weight);
    return bad;
}

int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    struct sh_tensor words, places, in;
    if (sh_model_tensor(m, SH_TOK_EMBED, -1, &words, e) || sh_model_tensor(m, SH_POS_EMBED, -1, &places, e) ||
        sh_model_tensor(m, SH_PROJ_IN, -1, &in, e))
        return -1;
    float *embedded = in.at ? xmalloc((size_t)n_tokens * (size_t)c->d_embed * sizeof(float)) : hidden;
    int bad = 0;
    for (int t = 0; t < n_tokens && !bad; t++) {
        if (tokens[t] < 0 || tokens[t] >= c->n_vocab)
            bad = sh_fail(e, "token %d at position %d is outside the vocabulary of %d", tokens[t], t, c->n_vocab);
        else
            bad = gather(&words, tokens[t], embedded + (size_t)t * (size_t)c->d_embed, 0, e);
    }
    if (!bad && in.at)
        bad = project(b, d, &in, embedded, n_tokens, hidden, e);
    for (int t = 0; t < n_tokens && !bad && places.at; t++)
        bad = gather(&places, t + c->pos_offset, hidden + (size_t)t * (size_t)c->d_model, 1, e);
    if (in.at)
        free(embedded);
    return bad;
}
