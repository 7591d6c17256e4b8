/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to the input of layer 0 (layer.h). The tables stay in the mapped checkpoint: only the pages of tokens that
 * occur are read, and only their rows are copied to the device. Rows of a packed table, or of one in two tensors, are
 * collected for each call. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

struct sh_entry {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct sh_arch *arch;
    struct sh_model *m;
    struct sh_tensor words, places;                     /* the tables; places.at NULL: no learned positions */
    struct sh_tensor more;                              /* rows that follow those of words; at NULL: none */
    float *waves;                                       /* `places` where they are computed, as far as texts */
                                                        /* have come; else NULL                   */
    float *some;                                        /* [rows, d_embed], collected from `words` (packed if its */
                                                        /* `at` is NULL) and `more`               */
    int32_t *count;                                     /* 0, 1, … rows - 1: their numbers        */
    int32_t *position;                                  /* [rows] of `places`                     */
    struct sh_weight *in;                               /* NULL: the embedding is as wide as the model */
    float *norm_w, *norm_b;                             /* device: [d_model]                      */
    void *narrow;                                       /* device: [rows, d_embed], with `in`     */
    struct sh_tensor own;                               /* the layers' own embeddings; rows 0: none */
    struct sh_weight *own_in, *stream[3];               /* … from the token's; of further streams */
    float *own_norm;                                    /* device: [d_own]                        */
    void *spare[2];                                     /* device: [rows, the widest of these] f32; NULL: not needed */
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

static int collects(const struct sh_entry *n)
{
    return !n->words.at || n->more.at;
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
        if ((!collects(n) && check_row(&n->words, tokens[t], tokens[t], e)) ||
            (n->places.at && check_row(&n->places, first + t + c->pos_offset, first + t + c->pos_offset, e)))
            return -1;
    }
    return 0;
}

static void collect_row(const struct sh_entry *n, int32_t token, float *to)
{
    const struct sh_tensor *t = token < n->words.rows ? &n->words : &n->more;
    size_t at = (size_t)(token < n->words.rows ? token : token - n->words.rows) * (size_t)t->cols;
    if (!t->at)
        sh_model_rows(n->m, SH_TOK_EMBED, -1, &token, 1, to);
    for (size_t i = 0; t->at && i < (size_t)t->cols; i++)
        to[i] = sh_tensor_element(t, at + i);
}

/* The tokens' rows, from row 0 of this call on. */
static int collect(struct sh_entry *n, const int32_t *tokens, int rows, struct sh_err *e)
{
    struct sh_tensor some = n->words;
    n->some = xreallocarray(n->some, (size_t)rows * (size_t)some.cols, sizeof *n->some);
    n->count = xreallocarray(n->count, (size_t)rows, sizeof *n->count);
    some.at = n->some;
    some.type = SH_F32;
    if (!n->more.at)
        sh_model_rows(n->m, SH_TOK_EMBED, -1, tokens, rows, n->some);
    for (int t = 0; t < rows; t++) {
        if (n->more.at)
            collect_row(n, tokens[t], n->some + (size_t)t * (size_t)some.cols);
        n->count[t] = t;
        if (check_row(&some, t, tokens[t], e))
            return -1;
    }
    return 0;
}

/* Where the tokens' rows are found: in the table, or among those that were collected. */
static void look_up(const struct sh_entry *n, const int32_t *tokens, struct sh_embed *a)
{
    a->table = collects(n) ? n->some : n->words.at;
    a->type = collects(n) ? SH_F32 : n->words.type;
    a->id = collects(n) ? n->count : tokens;
}

/* hidden = scale * words + positions */
static void add_up(const struct sh_entry *n, const int32_t *tokens, int rows, void *hidden)
{
    const struct sh_arch *c = n->arch;
    struct sh_embed a = {.out = sh_layer_part(c, hidden, rows, 0, c->d_model), .position_table = n->places.at,
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

/* The layers' own embeddings of the tokens: (sqrt(d) * the table's + the norm of W h / sqrt(d_model)) / sqrt(2), where
 * tokens beyond the table have row 0. */
static int add_own(struct sh_entry *n, const int32_t *tokens, int rows, void *hidden, struct sh_err *e)
{
    const struct sh_arch *c = n->arch;
    int d = c->streams.d_own, all = c->n_layer * d;
    struct sh_mat from_token = sh_dense(n->spare[0], SH_F32, rows, all), out = sh_dense(n->spare[1], SH_F32, rows, all);
    struct sh_mat each = sh_dense(from_token.at, SH_F32, rows * c->n_layer, d);
    struct sh_linear in = {.out = from_token, .x = sh_layer_part(c, hidden, rows, 0, c->d_model), .w = n->own_in};
    struct sh_norm norm = {.out = each, .x = each, .weight = n->own_norm, .eps = c->norm_eps * (float)c->d_model,
                           .kind = SH_NORM_RMS};
    struct sh_scatter add = {.out = out, .x = from_token, .by = sqrtf(0.5f)};
    int32_t *id = xcalloc((size_t)rows, sizeof *id);
    float *some = n->own.at ? NULL : xcalloc((size_t)rows * (size_t)all, sizeof *some);
    int bad = 0;
    for (int t = 0; t < rows; t++)
        id[t] = tokens[t] < n->own.rows ? tokens[t] : 0;
    if (some)
        sh_model_rows(n->m, SH_OWN_EMBED, -1, id, rows, some);
    struct sh_tensor table = n->own;
    table.at = some ? some : n->own.at;
    table.type = some ? SH_F32 : n->own.type;
    for (int t = 0; t < rows && !bad; t++) {
        bad = check_row(&table, some ? t : id[t], id[t], e);
        id[t] = some ? t : id[t];
    }
    struct sh_embed a = {.out = out, .table = table.at, .type = table.type, .id = id, .scale = sqrtf((float)d / 2)};
    if (!bad) {
        n->b->linear(n->d, &in);
        n->b->norm(n->d, &norm);
        n->b->embed(n->d, &a);
        n->b->scatter(n->d, &add);
        n->b->cast(n->d, sh_layer_part(c, hidden, rows, sh_arch_own_at(c, 0), all), out);
    }
    free(id);
    free(some);
    return bad ? -1 : 0;
}

/* Further streams are products of the first, as long as that, or the same (hyper-connections). */
static void add_streams(struct sh_entry *n, int rows, void *hidden)
{
    const struct sh_arch *c = n->arch;
    struct sh_mat first = sh_layer_part(c, hidden, rows, 0, c->d_model);
    struct sh_mat out = sh_dense(n->spare[0], SH_F32, rows, c->d_model);
    for (int i = 1; i < c->streams.n; i++) {
        if (!c->streams.hyper)
            sh_streams_match(n->b, n->d, n->stream[i - 1], first, first, out);
        n->b->cast(n->d, sh_layer_part(c, hidden, rows, (size_t)i * (size_t)c->d_model, c->d_model),
                   c->streams.hyper ? first : out);
    }
}

/* The token itself, for layers with embeddings of n-grams. */
static void add_token(struct sh_entry *n, const int32_t *tokens, int rows, void *hidden)
{
    const struct sh_arch *c = n->arch;
    struct sh_mat all = sh_dense(n->spare[0], SH_F32, rows, 1);
    float *token = xmalloc((size_t)rows * sizeof *token);
    for (int t = 0; t < rows; t++)
        token[t] = (float)tokens[t];
    n->b->put(n->d, all.at, token, (size_t)rows * sizeof *token);
    n->b->cast(n->d, sh_layer_part(c, hidden, rows, sh_arch_token_at(c), 1), all);
    free(token);
}

static int load_streams(struct sh_entry *n, struct sh_err *e)
{
    static const enum sh_role role[] = {SH_STREAM_IN_1, SH_STREAM_IN_2, SH_STREAM_IN_3};
    int bad = (!sh_model_is_packed(n->m, SH_OWN_EMBED, -1, &n->own) &&
               sh_model_tensor(n->m, SH_OWN_EMBED, -1, &n->own, e)) ||
              sh_layer_matrix(n->b, n->d, n->m, SH_OWN_PROJ, -1, SH_F32, &n->own_in, e) ||
              sh_layer_vector(n->b, n->d, n->m, SH_OWN_NORM_W, -1, &n->own_norm, e);
    for (int i = 0; i < 3 && !bad; i++)
        bad = sh_layer_matrix(n->b, n->d, n->m, role[i], -1, SH_F32, &n->stream[i], e);
    return bad ? -1 : 0;
}

/* More rows than before may need more memory. */
static int make_room(struct sh_entry *n, int rows, struct sh_err *e)
{
    const struct sh_arch *c = n->arch;
    size_t own = (size_t)(c->n_layer * c->streams.d_own), wide = own > (size_t)c->d_model ? own : (size_t)c->d_model;
    const struct { void **at; size_t cols; } part[] = {
        {&n->narrow, n->in ? (size_t)c->d_embed : 0}, {&n->spare[0], own || c->streams.n > 1 ? wide : 0},
        {&n->spare[1], own}};
    for (int i = 0; i < 3 && rows > n->rows; i++) {
        n->b->release(n->d, *part[i].at);
        *part[i].at = NULL;
        if (part[i].cols && !(*part[i].at = n->b->alloc(n->d, (size_t)rows * part[i].cols * sizeof(float), e))) {
            n->rows = 0;
            return -1;
        }
    }
    n->rows = rows > n->rows ? rows : n->rows;
    return 0;
}

/* Position p, element i of the first half: sin(p f_i), f_i = 10000^(-i / (half - 1)) or 10000^(-i / half); of the
 * second: cos. Afterwards those of positions below `end` are there. */
static void make_waves(struct sh_entry *n, int end)
{
    const struct sh_arch *c = n->arch;
    int from = n->places.rows, half = c->d_model / 2, most = c->max_pos + c->pos_offset;
    int rows = (end < c->max_pos ? end : c->max_pos) + c->pos_offset;
    if (rows <= from)
        return;
    rows = rows > 2 * from ? rows : 2 * from < most ? 2 * from : most;
    n->waves = xreallocarray(n->waves, (size_t)rows * (size_t)c->d_model, sizeof *n->waves);
    for (int i = 0; i < half; i++) {
        float f = c->waves_of_half ? 1 / powf(10000, 2 * (float)i / (float)c->d_model)
                                   : expf((float)i * -(float)(log(10000) / (half - 1)));
        for (int p = from; p < rows; p++) {
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
              sh_model_tensor(m, SH_MORE_EMBED, -1, &n->more, e) ||
              sh_model_tensor(m, SH_POS_EMBED, -1, &n->places, e) || sh_layer_matrix(b, d, m, SH_PROJ_IN, -1, SH_F32,
                              &n->in, e) || sh_layer_vector(b, d, m, SH_EMBED_NORM_W, -1, &n->norm_w,
                              e) || sh_layer_vector(b, d, m, SH_EMBED_NORM_B, -1, &n->norm_b, e);
    if (bad || load_streams(n, e)) {
        sh_entry_free(n);
        return NULL;
    }
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
    n->b->drop(n->d, n->own_in);
    n->b->release(n->d, n->own_norm);
    for (int i = 0; i < 3; i++)
        n->b->drop(n->d, n->stream[i]);
    for (int i = 0; i < 2; i++)
        n->b->release(n->d, n->spare[i]);
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
    for (int s = 0; s < n_seq && c->pos == SH_POS_WAVES; s++)
        make_waves(n, (first ? first[s] : 0) + start[s + 1] - start[s]);
    for (int s = 0; s < n_seq; s++)
        if (check_rows(n, tokens + start[s], start[s + 1] - start[s], first ? first[s] : 0, e))
            return -1;
    if (collects(n) && rows && collect(n, tokens, rows, e))
        return -1;
    if (make_room(n, rows, e))
        return -1;
    n->position = xreallocarray(n->position, (size_t)rows + 1, sizeof *n->position);
    for (int s = 0; s < n_seq; s++)
        for (int row = start[s]; row < start[s + 1]; row++)
            n->position[row] = (first ? first[s] : 0) + row - start[s] + c->pos_offset;
    if (rows)
        (n->in ? project : add_up)(n, tokens, rows, hidden);
    if (n->norm_w || c->flags & SH_HAS_EMBED_NORM) {
        struct sh_mat h = sh_layer_part(c, hidden, rows, 0, c->d_model);
        struct sh_norm a = {.out = h, .x = h, .weight = n->norm_w, .bias = n->norm_b, .eps = c->norm_eps,
                            .kind = c->norm};
        n->b->norm(n->d, &a);
    }
    if (rows && c->streams.d_own && add_own(n, tokens, rows, hidden, e))
        return -1;
    if (rows)
        add_streams(n, rows, hidden);
    if (rows && c->ngrams.n_layer)
        add_token(n, tokens, rows, hidden);
    if (rows && c->shared.n)
        n->b->cast(n->d, sh_layer_part(c, hidden, rows, sh_arch_late_at(c), c->d_model),
                   sh_layer_part(c, hidden, rows, 0, c->d_model));
    return 0;
}

int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e)
{
    size_t bytes = (size_t)n_tokens * sh_arch_row(sh_model_arch(m)) * sizeof(float);
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
