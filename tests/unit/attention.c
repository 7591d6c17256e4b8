/* SPDX-License-Identifier: Apache-2.0 */
/* See attention.h. */
#include "tests/unit/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"

enum { GAP = 3 };                                       /* numbers between two rows of q, k, v, out */

/* Normal numbers that the type holds, or any. */
static struct matrix operand(const struct target *t, const struct shape *s, int rows, int cols, int gap, uint64_t seed,
                             double deviation)
{
    struct matrix x = matrix_new(t, SH_F32, rows, cols, gap);
    matrix_normal(t, &x, seed, deviation);
    for (int i = 0; i < rows && !s->rough; i++)
        for (int j = 0; j < cols; j++)
            matrix_set(&x, i, j, rounded(s->type, matrix_at(&x, i, j)));
    matrix_put(t, &x);
    return x;
}

void attention_new(const struct target *t, struct attention *c, const struct shape *s, const int *lengths, int n_seq)
{
    *c = (struct attention){.a = {.n_head = s->n_head, .n_kv_head = s->n_kv_head, .d_head = s->d_head,
                                  .window = s->window, .softcap = s->softcap, .n_seq = n_seq}};
    CU_ASSERT_FATAL(n_seq <= MAX_SEQ && s->n_head <= MAX_HEAD);
    for (int i = 0; i < n_seq; i++) {
        c->start[i + 1] = c->start[i] + lengths[i];
        c->longest = lengths[i] > c->longest ? lengths[i] : c->longest;
    }
    int rows = c->start[n_seq], q_cols = s->n_head * s->d_head, kv_cols = s->n_kv_head * s->d_head;
    c->rough = s->rough && s->type != SH_F32;
    c->q = operand(t, s, rows, q_cols, GAP, 21, 2);
    c->k = operand(t, s, rows, kv_cols, GAP, 22, 1);
    c->v = operand(t, s, rows, kv_cols, 2 * GAP, 23, 1);
    c->out = matrix_new(t, s->type, rows, q_cols, GAP);
    for (int h = 0; h < s->n_head; h++)
        c->slope[h] = ldexpf(0.75f, -h);
    c->a.scale = (float)ldexp(1, -(int)lround(log2(s->d_head) / 2));
    c->a.q = c->q.m;
    c->a.k = c->k.m;
    c->a.v = c->v.m;
    c->a.out = c->out.m;
    c->a.start = c->start;
    c->a.slopes = s->slopes ? c->slope : NULL;
}

void attention_free(const struct target *t, struct attention *c)
{
    matrix_free(t, &c->q);
    matrix_free(t, &c->k);
    matrix_free(t, &c->v);
    matrix_free(t, &c->out);
}

void attention_run(const struct target *t, struct attention *c)
{
    t->b->attend(t->d, &c->a);
    target_sync(t);
}

int attention_length(const struct attention *c, int sequence)
{
    return c->start[sequence + 1] - c->start[sequence];
}

int attention_first(const struct attention *c, int row)
{
    return c->a.window && row + 1 > c->a.window ? row + 1 - c->a.window : 0;
}

size_t attention_scores(const struct attention *c, int rows)
{
    size_t n = 0;
    for (int row = 0; row < rows; row++)
        n += (size_t)(row + 1 - attention_first(c, row));
    return n;
}

double attention_unit(const struct attention *c)
{
    return c->rough ? rounding(c->a.out.type, 1) : 0;
}

double attention_step(const struct attention *c)
{
    return c->rough ? rounding(c->a.out.type, 0) : 0;
}

/* One score before softmax. q and k are rounded by u at most: |q k| differs by (2 u + u^2) |q k|,
 * and the type's smallest step times |q| and |k|. tanh never widens a difference. In f32: 1e-7 of the
 * products' magnitudes, and 2^-21 of what is added or capped. */
static double score(const struct attention *c, int q_row, int head, int k_row, double *off)
{
    const struct sh_attend *a = &c->a;
    int kv = head / (a->n_head / a->n_kv_head);
    const float *q = (const float *)c->q.host + (size_t)q_row * a->q.stride + head * a->d_head;
    const float *k = (const float *)c->k.host + (size_t)k_row * a->k.stride + kv * a->d_head;
    double sum = 0, size = 0, steps = 0, u = attention_unit(c), step = attention_step(c);
    for (int i = 0; i < a->d_head; i++) {
        double product = (double)q[i] * (double)k[i];
        sum += product;
        size += fabs(product);
        steps += fabs((double)q[i]) + fabs((double)k[i]);
    }
    double x = (double)a->scale * sum, cap = (double)a->softcap;
    *off = (double)a->scale * ((2 * u + u * u + 1e-7) * size + step * steps);
    if (cap > 0) {
        x = cap * tanh(x / cap);
        *off += 0x1p-21 * cap;
    }
    if (a->slopes) {
        x += (double)a->slopes[head] * (k_row - q_row);
        *off += 0x1p-21 * fabs((double)a->slopes[head] * (k_row - q_row));
    }
    return x;
}

void attention_row(const struct attention *c, int sequence, int head, int row, double *x, double *off)
{
    int base = c->start[sequence], first = attention_first(c, row), n = row + 1 - first;
    double top = -INFINITY, sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        x[i] = score(c, base + row, head, base + first + i, &off[i]);
        top = fmax(top, x[i]);
    }
    for (int i = 0; i < n; i++) {
        double part = exp(x[i] - top);
        sum += part;
        most += part * expm1(off[i]);   /* the sum may be off by this                             */
    }
    for (int i = 0; i < n; i++) {
        x[i] -= top + log(sum);
        off[i] += log1p(most / sum);
    }
}

size_t pack_bytes(enum sh_pack pack)
{
    static const size_t bytes[] = {[SH_PACK_F32] = 4, [SH_PACK_F16] = 2, [SH_PACK_LOG8] = 1, [SH_PACK_SETS] = 0};
    return bytes[pack];
}

int recording_words(const struct recording *r, int sequence)
{
    return (attention_length(r->c, sequence) + 63) / 64;
}

static void begin(const struct recording *r, struct recorded *to, int sequence)
{
    size_t rows = (size_t)attention_length(r->c, sequence), scores = attention_scores(r->c, (int)rows);
    to->thread = pthread_self();
    to->packed = xmalloc(scores * pack_bytes(r->tap.pack) + 1);
    if (r->tap.pack != SH_PACK_SETS)
        return;
    size_t sets = rows * (size_t)(r->tap.lanes[sequence].n + 1);
    to->bits = xcalloc(sets * (size_t)recording_words(r, sequence), sizeof *to->bits);
    to->figures = xcalloc(rows, sizeof *to->figures);
    to->value = xcalloc(scores, sizeof *to->value);
}

static void take_scores(const struct recording *r, struct recorded *to, int n_rows, const void *packed)
{
    size_t before = attention_scores(r->c, to->rows), after = attention_scores(r->c, to->rows + n_rows);
    size_t bytes = pack_bytes(r->tap.pack);
    memcpy(to->packed + before * bytes, packed, (after - before) * bytes);
}

/* The words must hold all keys that these rows see; what is outside them is no key. */
static void take_sets(const struct recording *r, struct recorded *to, int sequence, int n_rows,
                      const struct sh_row_sets *sets)
{
    int n_set = r->tap.lanes[sequence].n + 1, words = recording_words(r, sequence), low = 0;
    if (sets->first_word < 0 || sets->first_word > attention_first(r->c, to->rows) / 64 ||
        sets->first_word + sets->n_word > words ||
        sets->first_word + sets->n_word <= (to->rows + n_rows - 1) / 64 || (r->tap.lanes[sequence].values != 0) !=
                                                                               (sets->value != NULL)) {
        to->disorder++;
        return;
    }
    for (int i = 0; i < n_rows * n_set; i++)
        for (int w = 0; w < sets->n_word; w++) {
            uint64_t word = sets->bits[(size_t)i * (size_t)sets->n_word + (size_t)w];
            to->bits[(size_t)(to->rows * n_set + i) * (size_t)words + (size_t)(sets->first_word + w)] = word;
            low += i % n_set == n_set - 1 ? __builtin_popcountll(word) : 0;
        }
    memcpy(to->figures + to->rows, sets->figures, (size_t)n_rows * sizeof *to->figures);
    size_t n = attention_scores(r->c, to->rows + n_rows) - attention_scores(r->c, to->rows);
    if (!sets->value || (size_t)low > n) {
        to->disorder += (size_t)low > n;
        return;
    }
    memcpy(to->value + to->n_value, sets->value, (n - (size_t)low) * sizeof *to->value);
    to->n_value += n - (size_t)low;
}

static void take(void *recording, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct recording *r = recording;
    struct recorded *to = &r->head[sequence * r->c->a.n_head + head];
    if (!to->packed)
        begin(r, to, sequence);
    if (first_row != to->rows || n_rows < 1 || first_row + n_rows > attention_length(r->c, sequence) ||
        !pthread_equal(to->thread, pthread_self())) {
        to->disorder++;
        return;
    }
    if (r->tap.pack == SH_PACK_SETS)
        take_sets(r, to, sequence, n_rows, packed);
    else
        take_scores(r, to, n_rows, packed);
    to->rows += n_rows;
}

struct recording *attention_record(const struct target *t, struct attention *c, enum sh_pack pack,
                                   const struct sh_lanes *lanes, const unsigned char *wanted)
{
    struct recording *r = xcalloc(1, sizeof *r);
    int wrong = 0;
    r->c = c;
    r->tap = c->a.tap = (struct sh_tap){.pack = pack, .lanes = lanes, .rows = take, .to = r, .wanted = wanted};
    attention_run(t, c);
    c->a.tap = (struct sh_tap){0};
    for (int i = 0; i < c->a.n_seq * c->a.n_head; i++) {
        int sequence = i / c->a.n_head, asked = !wanted || wanted[sequence];
        wrong += r->head[i].disorder || r->head[i].rows != (asked ? attention_length(c, sequence) : 0);
    }
    CU_ASSERT_EQUAL_FATAL(wrong, 0);
    return r;
}

void recording_free(struct recording *r)
{
    for (int i = 0; i < MAX_SEQ * MAX_HEAD; i++) {
        free(r->head[i].packed);
        free(r->head[i].bits);
        free(r->head[i].figures);
        free(r->head[i].value);
    }
    free(r);
}
