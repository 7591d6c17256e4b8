/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to the input of layer 0 (layer.h). The tables stay in the mapped checkpoint: only the pages of tokens that
 * occur are read, and only their rows are copied to the device. Rows of a packed table are unpacked for each call. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layer.h"

struct sh_entry {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct sh_arch *arch;
    struct sh_model *m;
    struct sh_tensor words, places;                     /* the tables; places.at NULL: no learned positions */
    float *waves;                                       /* `places` where they are computed; else NULL */
    float *some;                                        /* [rows, d_embed] of a packed `words`, whose `at` is NULL */
    int32_t *count;                                     /* 0, 1, … rows - 1: their numbers        */
    int32_t *position;                                  /* [rows] of `places`                     */
    struct sh_weight *in;                               /* NULL: the embedding is as wide as the model */
    float *norm_w, *norm_b;                             /* device: [d_model]                      */
    void *narrow;                                       /* device: [rows, d_embed], with `in`     */
    int rows;
};

/* Row `at` of the view is the tensor's row `row`. */
static int check_row(const struct sh_tensor *t, int at, int row, struct sh_err *e)
{
    struct sh_tensor one = *t;
    struct sh_err ignored;
    one.at = (const char *)t->at + (size_t)at * (size_t)t->cols * sh_type_bytes(t->type);
    one.rows = 1;
    if (!sh_model_check_finite(&one, &ignored))
        return 0;
    size_t i = 0;
    while (isfinite(sh_tensor_element(&one, i)))
        i++;
    return sh_fail(e, "tensor %s: row %d, column %zu is %g, expected a finite number", t->name, row, i,
                   (double)sh_tensor_element(&one, i));
}

/* The n tokens of one sequence that begin at position `first`. */
static int check_rows(const struct sh_entry *n, const int32_t *tokens, int n_tokens, int first, struct sh_err *e)
{
    const struct sh_arch *c = n->arch;
    if (n->places.at && first + n_tokens + c->pos_offset > n->places.rows)
        return sh_fail(e, "position %d is outside the model's %d positions", n->places.rows - c->pos_offset,
                       n->places.rows - c->pos_offset);
    for (int t = 0; t < n_tokens; t++) {
        if (tokens[t] < 0 || tokens[t] >= c->n_vocab)
            return sh_fail(e, "token %d at position %d is outside the vocabulary of %d", tokens[t], first + t,
                           c->n_vocab);
        if ((n->words.at && check_row(&n->words, tokens[t], tokens[t], e)) ||
            (n->places.at && check_row(&n->places, first + t + c->pos_offset, first + t + c->pos_offset, e)))
            return -1;
    }
    return 0;
}

/* The rows of a packed table, from row 0 of this call on. */
static int unpack(struct sh_entry *n, const int32_t *tokens, int rows, struct sh_err *e)
{
    struct sh_tensor some = n->words;
    n->some = xreallocarray(n->some, (size_t)rows * (size_t)some.cols, sizeof *n->some);
    n->count = xreallocarray(n->count, (size_t)rows, sizeof *n->count);
    sh_model_rows(n->m, SH_TOK_EMBED, -1, tokens, rows, n->some);
    some.at = n->some;
    for (int t = 0; t < rows; t++) {
        n->count[t] = t;
        if (check_row(&some, t, tokens[t], e))
            return -1;
    }
    return 0;
}

/* Where the tokens' rows are found: in the table, or among those that were unpacked. */
static void look_up(const struct sh_entry *n, const int32_t *tokens, struct sh_embed *a)
{
    a->table = n->words.at ? n->words.at : n->some;
    a->type = n->words.type;
    a->id = n->words.at ? tokens : n->count;
}

/* hidden = scale * words + positions */
static void add_up(const struct sh_entry *n, const int32_t *tokens, int rows, void *hidden)
{
    const struct sh_arch *c = n->arch;
    struct sh_embed a = {.out = sh_dense(hidden, SH_F32, rows, c->d_model), .position_table = n->places.at,
                         .position_type = n->places.type, .position = n->position, .scale = c->embed_scale};
    look_up(n, tokens, &a);
    n->b->embed(n->d, &a);
}

/* hidden = positions + (scale * words) W^T, where the embedding is narrower than the model */
static void project(const struct sh_entry *n, const int32_t *tokens, int rows, void *hidden)
{
    const struct sh_arch *c = n->arch;
    struct sh_embed a = {.out = sh_dense(n->narrow, SH_F32, rows, c->d_embed), .scale = c->embed_scale};
    struct sh_linear in = {.out = sh_dense(hidden, SH_F32, rows, c->d_model), .x = a.out, .w = n->in,
                           .add = n->places.at != NULL};
    struct sh_embed b = {.out = in.out, .table = n->places.at, .type = n->places.type, .id = n->position, .scale = 1};
    look_up(n, tokens, &a);
    n->b->embed(n->d, &a);
    if (n->places.at)
        n->b->embed(n->d, &b);
    n->b->linear(n->d, &in);
}

/* Position p, element i of the first half: sin(p f_i), f_i = 10000^(-i / (half - 1)); of the second: cos. */
static void make_waves(struct sh_entry *n)
{
    const struct sh_arch *c = n->arch;
    int rows = c->max_pos + c->pos_offset, half = c->d_model / 2;
    n->waves = xcalloc((size_t)rows * (size_t)c->d_model, sizeof *n->waves);
    for (int i = 0; i < half; i++) {
        float f = expf((float)i * -(float)(log(10000) / (half - 1)));
        for (int p = 0; p < rows; p++) {
            float *row = n->waves + (size_t)p * (size_t)c->d_model;
            row[i] = sinf((float)p * f);
            row[half + i] = cosf((float)p * f);
        }
    }
    n->places = (struct sh_tensor){.at = n->waves, .type = SH_F32, .rows = rows, .cols = c->d_model, .name = "waves"};
}

struct sh_entry *sh_entry_new(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, struct sh_err *e)
{
    struct sh_entry *n = xcalloc(1, sizeof *n);
    n->b = b;
    n->d = d;
    n->arch = sh_model_arch(m);
    n->m = m;
    int bad = (!sh_model_is_packed(m, SH_TOK_EMBED, -1, &n->words) &&
               sh_model_tensor(m, SH_TOK_EMBED, -1, &n->words, e)) ||
              sh_model_tensor(m, SH_POS_EMBED, -1, &n->places, e) || sh_layer_matrix(b, d, m, SH_PROJ_IN, -1, SH_F32,
                              &n->in, e) || sh_layer_vector(b, d, m, SH_EMBED_NORM_W, -1, &n->norm_w,
                              e) || sh_layer_vector(b, d, m, SH_EMBED_NORM_B, -1, &n->norm_b, e);
    if (bad) {
        sh_entry_free(n);
        return NULL;
    }
    if (n->arch->pos == SH_POS_WAVES)
        make_waves(n);
    return n;
}

void sh_entry_free(struct sh_entry *n)
{
    if (!n)
        return;
    n->b->release(n->d, n->narrow);
    n->b->release(n->d, n->norm_w);
    n->b->release(n->d, n->norm_b);
    n->b->drop(n->d, n->in);
    free(n->waves);
    free(n->some);
    free(n->count);
    free(n->position);
    free(n);
}

int sh_entry_run(struct sh_entry *n, const int32_t *tokens, int n_seq, const int *start, const int *first,
                 void *hidden, struct sh_err *e)
{
    const struct sh_arch *c = n->arch;
    int rows = start[n_seq];
    for (int s = 0; s < n_seq; s++)
        if (check_rows(n, tokens + start[s], start[s + 1] - start[s], first ? first[s] : 0, e))
            return -1;
    if (!n->words.at && rows && unpack(n, tokens, rows, e))
        return -1;
    if (n->in && rows > n->rows) {
        n->b->release(n->d, n->narrow);
        n->rows = 0;
        if (!(n->narrow = n->b->alloc(n->d, (size_t)rows * (size_t)c->d_embed * sizeof(float), e)))
            return -1;
        n->rows = rows;
    }
    n->position = xreallocarray(n->position, (size_t)rows + 1, sizeof *n->position);
    for (int s = 0; s < n_seq; s++)
        for (int row = start[s]; row < start[s + 1]; row++)
            n->position[row] = (first ? first[s] : 0) + row - start[s] + c->pos_offset;
    if (rows)
        (n->in ? project : add_up)(n, tokens, rows, hidden);
    if (n->norm_w || c->flags & SH_HAS_EMBED_NORM) {
        struct sh_mat h = sh_dense(hidden, SH_F32, rows, c->d_model);
        struct sh_norm a = {.out = h, .x = h, .weight = n->norm_w, .bias = n->norm_b, .eps = c->norm_eps,
                            .kind = c->norm};
        n->b->norm(n->d, &a);
    }
    return 0;
}

int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e)
{
    size_t bytes = (size_t)n_tokens * (size_t)sh_model_arch(m)->d_model * sizeof(float);
    struct sh_entry *n = sh_entry_new(b, d, m, e);
    void *at = n ? b->alloc(d, bytes, e) : NULL;
    int bad = !at || sh_entry_run(n, tokens, 1, (int[]){0, n_tokens}, NULL, at, e);
    if (!bad) {
        b->get(d, hidden, at, bytes);
        bad = b->sync(d, e);
    }
    b->release(d, at);
    sh_entry_free(n);
    return bad ? -1 : 0;
}
