/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention that can hand out its probabilities. One (sequence, KV head) is one piece of
 * work: its keys are transposed and its values copied once into dense scratch, then every query
 * head of the group walks over blocks of BLOCK queries:
 *
 *     S = scale * Q K^T      only columns some query of the block can see
 *     S = cap(S) + slopes    when the model has them
 *     P = exp(S - row max)   not yet divided by the row's sum
 *     out = (P V) / sum      and, if tapped, each row recorded from S or P (record.c)
 *
 * So there is never more than BLOCK x T of scores per thread, with a window not even that. The result of
 * a row does not depend on whether it is recorded: a resumed trace recomputes exactly the same hidden
 * states. 16-bit operands are computed with as f32; only `out` is rounded to their type. */
#include "kernels/cpu/attend.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"

/* The two products are functions of their own: inlined, the tiles would share their registers with all that
 * is around them. */
#define SEPARATE __attribute__((noinline))

static int padded(int n)
{
    return (n + COLS - 1) / COLS * COLS;
}

/* c[ROWS, COLS] = a[ROWS, depth] b[depth, COLS]; rows lie lda, ldb, ldc floats apart. */
static inline void tile(float *c, int ldc, const float *a, int lda, const float *b, int ldb, int depth)
{
    vec acc[ROWS][2] = {0};
    for (int k = 0; k < depth; k++) {
        const vec b0 = *(const vec *)(b + (size_t)k * (size_t)ldb);
        const vec b1 = *(const vec *)(b + (size_t)k * (size_t)ldb + CPU_FLOATS);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            float x = a[(size_t)i * (size_t)lda + (size_t)k];
            acc[i][0] += x * b0;
            acc[i][1] += x * b1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        *(vec *)(c + (size_t)i * (size_t)ldc) = acc[i][0];
        *(vec *)(c + (size_t)i * (size_t)ldc + CPU_FLOATS) = acc[i][1];
    }
}

static const float *at_row(const struct sh_mat *m, int row, int col)
{
    return (const float *)m->at + (size_t)row * m->stride + col;
}

/* CPU_FLOATS keys at a time, so that what is written lies together. */
static void transpose_keys(struct scratch *w, const struct sh_attend *a, int row0, int n, int col)
{
    for (int j0 = 0; j0 < n; j0 += CPU_FLOATS) {
        int m = n - j0 < CPU_FLOATS ? n - j0 : CPU_FLOATS;
        const float *k = at_row(&a->k, row0 + j0, col);
        for (int c = 0; c < a->d_head; c++) {
            float *to = w->kt + (size_t)c * (size_t)w->n_pad + (size_t)j0;
            for (int j = 0; j < m; j++)
                to[j] = k[(size_t)j * a->k.stride + (size_t)c];
        }
    }
}

static void load_keys_values(struct scratch *w, const struct sh_attend *a, int row0, int n, int kv_head)
{
    int d = a->d_head, col = kv_head * d;
    transpose_keys(w, a, row0, n, col);
    for (int j = 0; j < n; j++) {
        const float *v = at_row(&a->v, row0 + j, col);
        memcpy(w->v + (size_t)j * (size_t)w->d_pad, v, (size_t)d * sizeof *v);
        memset(w->v + (size_t)j * (size_t)w->d_pad + d, 0, (size_t)(w->d_pad - d) * sizeof *v);
    }
    for (int c = 0; c < d; c++)
        memset(w->kt + (size_t)c * (size_t)w->n_pad + n, 0, (size_t)(w->n_pad - n) * sizeof(float));
    memset(w->v + (size_t)n * (size_t)w->d_pad, 0, (size_t)(w->n_pad - n) * (size_t)w->d_pad * sizeof(float));
}

/* Row i's keys lie in the columns [from, to). */
static void row_columns(const struct sh_attend *a, const struct block *b, int i, int *from, int *to)
{
    *from = first_key(a, b->q0 + i) - b->first_column;
    *to = b->q0 + i + 1 - b->first_column;
}

static void adjust_rows(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    float slope = a->slopes ? a->slopes[b->head] : 0, cap = a->softcap;
    for (int i = 0; i < b->n_rows; i++) {
        float *s = w->s + (size_t)i * (size_t)w->s_pad;
        int from, to;
        row_columns(a, b, i, &from, &to);
        if (cap > 0)
            for (int j = from; j < to; j++)
                s[j] = cap * tanh_of(s[j] / cap);
        if (a->slopes)
            for (int j = from; j < to; j++)
                s[j] += slope * (float)(j + 1 - to);
    }
}

/* P is zero in the columns that a row does not see. */
static void softmax_rows(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    for (int i = 0; i < b->n_rows; i++) {
        int from, to;
        row_columns(a, b, i, &from, &to);
        const float *s = w->s + (size_t)i * (size_t)w->s_pad + from;
        float *p = w->p + (size_t)i * (size_t)w->s_pad + from;
        int n = to - from;
        float top = s[0], sum = 0;
#pragma omp simd reduction(max : top)
        for (int j = 0; j < n; j++)
            top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < n; j++) {
            p[j] = exp_of_negative(s[j] - top);
            sum += p[j];
        }
        memset(p - from, 0, (size_t)from * sizeof *p);
        memset(p + n, 0, (size_t)(b->width - to) * sizeof *p);
        w->top[i] = top;
        w->sum[i] = sum;
        w->faulty |= !(sum < INFINITY);
    }
}

static void store_out(const struct scratch *w, const struct sh_attend *a, int row, int head, int i)
{
    float *o = w->o + (size_t)i * (size_t)w->d_pad, inverse = 1.0f / w->sum[i];
    size_t at = (size_t)row * a->out.stride + (size_t)head * (size_t)a->d_head;
    for (int c = 0; c < a->d_head; c++)
        o[c] *= inverse;
    store_floats((char *)a->out.at + at * sh_type_bytes(a->out.type), a->out.type, o, (size_t)a->d_head);
}

SEPARATE static void multiply_keys(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    int row0 = a->start[b->sequence] + b->q0, d = a->d_head;
    for (int i = 0; i < b->n_rows; i++) {
        const float *q = at_row(&a->q, row0 + i, b->head * d);
        for (int c = 0; c < d; c++)
            w->q[i * d + c] = q[c] * a->scale;
    }
    for (int i = 0; i < b->n_rows; i += ROWS)
        for (int j = 0; j < b->width; j += COLS)
            tile(w->s + (size_t)i * (size_t)w->s_pad + j, w->s_pad, w->q + i * d, d, w->kt + b->first_column + j,
                 w->n_pad, d);
}

SEPARATE static void multiply_values(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    const float *v = w->v + (size_t)b->first_column * (size_t)w->d_pad;
    int depth = b->q0 + b->n_rows - b->first_column, row0 = a->start[b->sequence] + b->q0;
    for (int i = 0; i < b->n_rows; i += ROWS)
        for (int c = 0; c < w->d_pad; c += COLS)
            tile(w->o + (size_t)i * (size_t)w->d_pad + c, w->d_pad, w->p + (size_t)i * (size_t)w->s_pad, w->s_pad,
                 v + c, w->d_pad, depth);
    for (int i = 0; i < b->n_rows; i++)
        store_out(w, a, row0 + i, b->head, i);
}

static void attend_head(struct scratch *w, const struct sh_attend *a, int sequence, int head)
{
    int n = a->start[sequence + 1] - a->start[sequence];
    for (int q0 = 0; q0 < n; q0 += BLOCK) {
        struct block b = {.sequence = sequence, .head = head, .q0 = q0, .n_rows = n - q0 < BLOCK ? n - q0 : BLOCK};
        b.first_column = first_key(a, q0) / COLS * COLS;
        b.width = padded(q0 + b.n_rows) - b.first_column;
        multiply_keys(w, a, &b);
        if (a->softcap > 0 || a->slopes)
            adjust_rows(w, a, &b);
        softmax_rows(w, a, &b);
        if (a->out.at)
            multiply_values(w, a, &b);
        if (is_wanted(a, sequence))
            CPU_NAME(cpu_record)(w, a, &b);
    }
}

/* Lay the scratch out in `base`, or only count its bytes. */
static size_t lay_out(struct scratch *w, const struct sh_attend *a, char *base)
{
    int longest = 0;
    for (int s = 0; s < a->n_seq; s++)
        if (a->start[s + 1] - a->start[s] > longest)
            longest = a->start[s + 1] - a->start[s];
    int wide = a->window && a->window < longest - BLOCK - COLS ? a->window + BLOCK + COLS : longest;
    /* One register tile more than needed: rows that lie 4096 bytes apart would share their cache sets. */
    size_t n = (size_t)(w->n_pad = padded(longest) + COLS), d = (size_t)(w->d_pad = padded(a->d_head));
    size_t s = (size_t)(w->s_pad = padded(wide) + COLS), at = 0;
    w->kt = carve(base, &at, (size_t)a->d_head * n * sizeof(float));
    w->v = carve(base, &at, n * d * sizeof(float));
    w->q = carve(base, &at, (size_t)BLOCK * (size_t)a->d_head * sizeof(float));
    w->s = carve(base, &at, BLOCK * s * sizeof(float));
    w->p = carve(base, &at, BLOCK * s * sizeof(float));
    w->o = carve(base, &at, BLOCK * d * sizeof(float));
    w->top = carve(base, &at, BLOCK * sizeof(float));
    w->sum = carve(base, &at, BLOCK * sizeof(float));
    CPU_NAME(cpu_record_lay_out)(&w->record, a, wide, base, &at);
    return at;
}

size_t CPU_NAME(cpu_attend_bytes)(const struct sh_attend *a)
{
    struct scratch w = {0};
    return lay_out(&w, a, NULL);
}

int CPU_NAME(cpu_attend)(const struct sh_attend *a, int n_threads)
{
    int faulty = 0, group = a->n_head / a->n_kv_head, n_work = a->n_seq * a->n_kv_head;
    size_t bytes = CPU_NAME(cpu_attend_bytes)(a);
#pragma omp parallel num_threads(n_threads)
    {
        struct scratch w = {0};
        char *base = xaligned(bytes);
        lay_out(&w, a, base);
        memset(w.q, 0, (size_t)BLOCK * (size_t)a->d_head * sizeof(float));     /* tiles read whole ROWS */
        memset(w.p, 0, BLOCK * (size_t)w.s_pad * sizeof(float));
#pragma omp for schedule(dynamic, 1)
        for (int work = 0; work < n_work; work++) {
            int sequence = work / a->n_kv_head, kv_head = work % a->n_kv_head;
            int n = a->start[sequence + 1] - a->start[sequence];
            w.faulty = 0;
            load_keys_values(&w, a, a->start[sequence], n, kv_head);
            for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
                attend_head(&w, a, sequence, head);
            if (w.faulty) {                             /* the first sequence is named */
#pragma omp critical
                faulty = faulty && faulty <= sequence ? faulty : sequence + 1;
            }
        }
        free(base);
    }
    return faulty;
}
