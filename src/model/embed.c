/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to the input of layer 0 (layer.h). The tables stay where they are, in the mapped checkpoint:
 * only the pages of tokens that occur are ever read, and only their rows travel to the device. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layer.h"

struct place {                                          /* one sequence on its way                */
    const struct sh_backend *b;
    struct sh_dev *d;
    int n;
    const int32_t *row_of;                              /* [n]: of the position table             */
    void *hidden, *words;                               /* device: [n, d_model], [n, d_embed]     */
    struct sh_weight *in;
    float *norm_w, *norm_b;                             /* device: [d_model]                      */
};

static float element(const struct sh_tensor *t, size_t i)
{
    return t->type == SH_F32   ? ((const float *)t->at)[i]
           : t->type == SH_F16 ? sh_f16_to_f32(((const uint16_t *)t->at)[i])
                               : sh_bf16_to_f32(((const uint16_t *)t->at)[i]);
}

static int check_row(const struct sh_tensor *t, int row, struct sh_err *e)
{
    for (int i = 0; i < t->cols; i++) {
        float x = element(t, (size_t)row * (size_t)t->cols + (size_t)i);
        if (!isfinite(x))
            return sh_fail(e, "tensor %s: row %d, column %d is %g, expected a finite number", t->name, row, i,
                           (double)x);
    }
    return 0;
}

static int check_rows(const struct sh_arch *c, const struct sh_tensor *words, const struct sh_tensor *places,
                      const int32_t *tokens, int n, struct sh_err *e)
{
    for (int t = 0; t < n; t++) {
        if (tokens[t] < 0 || tokens[t] >= c->n_vocab)
            return sh_fail(e, "token %d at position %d is outside the vocabulary of %d", tokens[t], t, c->n_vocab);
        if (check_row(words, tokens[t], e) || (places->at && check_row(places, t + c->pos_offset, e)))
            return -1;
    }
    return 0;
}

static struct sh_mat rows_of(const struct place *p, void *at, int cols)
{
    return (struct sh_mat){at, SH_F32, p->n, cols, (size_t)cols};
}

/* hidden = scale * words + positions */
static void add_up(const struct place *p, const struct sh_tensor *words, const struct sh_tensor *places,
                   const int32_t *tokens, const struct sh_arch *c)
{
    struct sh_embed a = {.out = rows_of(p, p->hidden, words->cols), .table = words->at, .type = words->type,
                         .id = tokens, .position_table = places->at, .position_type = places->type,
                         .first_position = c->pos_offset, .scale = c->embed_scale};
    p->b->embed(p->d, &a);
}

/* hidden = positions + (scale * words) W^T, where the embedding is narrower than the model */
static void project(const struct place *p, const struct sh_tensor *words, const struct sh_tensor *places,
                    const int32_t *tokens, const struct sh_arch *c)
{
    struct sh_embed a = {.out = rows_of(p, p->words, words->cols), .table = words->at, .type = words->type,
                         .id = tokens, .scale = c->embed_scale};
    struct sh_embed b = {.out = rows_of(p, p->hidden, c->d_model), .table = places->at, .type = places->type,
                         .id = p->row_of, .scale = 1};
    struct sh_linear in = {.out = b.out, .x = a.out, .w = p->in, .add = places->at != NULL};
    p->b->embed(p->d, &a);
    if (places->at)
        p->b->embed(p->d, &b);
    p->b->linear(p->d, &in);
}

static void norm(const struct place *p, const struct sh_arch *c)
{
    struct sh_mat h = rows_of(p, p->hidden, c->d_model);
    struct sh_norm a = {.out = h, .x = h, .weight = p->norm_w, .bias = p->norm_b, .eps = c->norm_eps, .kind = c->norm};
    p->b->norm(p->d, &a);
}

static float *load_norm(const struct place *p, struct sh_model *m, enum sh_role role, int *bad, struct sh_err *e)
{
    struct sh_tensor t;
    *bad = *bad || sh_model_tensor(m, role, -1, &t, e) || sh_model_check_finite(&t, e);
    return *bad ? NULL : sh_layer_vector(p->b, p->d, sh_model_arch(m), role, &t, bad, e);
}

int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    struct sh_tensor words, places, in;
    if (sh_model_tensor(m, SH_TOK_EMBED, -1, &words, e) || sh_model_tensor(m, SH_POS_EMBED, -1, &places, e) ||
        sh_model_tensor(m, SH_PROJ_IN, -1, &in, e) || check_rows(c, &words, &places, tokens, n_tokens, e) ||
        (in.at && sh_model_check_finite(&in, e)))
        return -1;
    size_t n = (size_t)n_tokens, bytes = n * (size_t)c->d_model * sizeof(float);
    int32_t *row_of = xmalloc(n * sizeof *row_of);
    for (int t = 0; t < n_tokens; t++)
        row_of[t] = t + c->pos_offset;
    struct place p = {.b = b, .d = d, .n = n_tokens, .row_of = row_of, .hidden = b->alloc(d, bytes, e)};
    int bad = !p.hidden;
    p.norm_w = load_norm(&p, m, SH_EMBED_NORM_W, &bad, e);
    p.norm_b = load_norm(&p, m, SH_EMBED_NORM_B, &bad, e);
    if (!bad && in.at)
        bad = !(p.words = b->alloc(d, n * (size_t)c->d_embed * sizeof(float), e)) ||
              !(p.in = b->weight(d, in.at, in.type, in.rows, in.cols, SH_F32, e));
    if (!bad) {
        if (in.at)
            project(&p, &words, &places, tokens, c);
        else
            add_up(&p, &words, &places, tokens, c);
        if (p.norm_w)
            norm(&p, c);
        b->get(d, hidden, p.hidden, bytes);
        bad = b->sync(d, e);
    }
    b->release(d, p.hidden);
    b->release(d, p.words);
    b->release(d, p.norm_w);
    b->release(d, p.norm_b);
    b->drop(d, p.in);
    free(row_of);
    return bad ? -1 : 0;
}
