/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention that can hand out its probabilities. One (sequence, KV head) is one piece of
 * work: its keys are transposed and its values copied once into dense scratch, then every query
 * head of the group walks over blocks of BLOCK queries:
 *
 *     S = scale * Q K^T      only columns some query of the block can see
 *     P = exp(S - row max)   not yet divided by the row's sum
 *     out = (P V) / sum      and, if tapped, each row packed from S or P
 *
 * So there is never more than BLOCK x T of scores per thread. The result of a row does not depend
 * on whether it is recorded: a resumed trace recomputes exactly the same hidden states. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif
#include <omp.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/score.h"

enum {
    BLOCK = 32,                                         /* queries                          */
    ROWS = CPU_FLOATS == 16 ? 8 : 4,                    /* of a register tile               */
    COLS = 2 * CPU_FLOATS                               /* of a register tile               */
};

struct scratch {                                        /* of one thread                    */
    float *kt;                                          /* [d_head, n_pad]: K transposed    */
    float *v;                                           /* [n_pad, d_pad]                   */
    float *q;                                           /* [BLOCK, d_head], scaled          */
    float *s, *p;                                       /* [BLOCK, n_pad]                   */
    float *o;                                           /* [BLOCK, d_pad]                   */
    float top[BLOCK], sum[BLOCK];
    unsigned char *packed;                              /* one block of rows                */
    int n_pad, d_pad;
    int faulty;                                         /* some row's sum was no number     */
};

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

/* Row i of the block sees keys 0..q0 + i. P is zero behind them, up to `width` columns. */
static void softmax_rows(struct scratch *w, int q0, int n_rows, int width)
{
    for (int i = 0; i < n_rows; i++) {
        const float *s = w->s + (size_t)i * (size_t)w->n_pad;
        float *p = w->p + (size_t)i * (size_t)w->n_pad;
        int n = q0 + i + 1;
        float top = s[0], sum = 0;
#pragma omp simd reduction(max : top)
        for (int j = 0; j < n; j++)
            top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < n; j++) {
            p[j] = exp_of_negative(s[j] - top);
            sum += p[j];
        }
        memset(p + n, 0, (size_t)(width - n) * sizeof *p);
        w->top[i] = top;
        w->sum[i] = sum;
        w->faulty |= !(sum < INFINITY);
    }
}

static void pack_f32(float *to, const float *p, int n, float inverse)
{
#pragma omp simd
    for (int j = 0; j < n; j++)
        to[j] = p[j] * inverse;
}

static void pack_f16(uint16_t *to, const float *p, int n, float inverse)
{
    int j = 0;
#ifdef __F16C__
    for (; j + 8 <= n; j += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + j),
                         _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(p + j), _mm256_set1_ps(inverse)),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
    for (; j < n; j++)
        to[j] = sh_f32_to_f16(p[j] * inverse);
}

/* code = round((lse - s) / STEP); adding 1.5 * 2^23 rounds to nearest even, as rintf does. */
static void pack_log8(uint8_t *to, const float *s, int n, float lse)
{
#pragma omp simd
    for (int j = 0; j < n; j++) {
        float x = (s[j] - lse) * (-1.0f / SH_LOG8_STEP);
        x = x < (float)SH_LOG8_ZERO ? x : (float)SH_LOG8_ZERO;  /* first: so NaN becomes ZERO */
        x = x > 0 ? x : 0;
        to[j] = (uint8_t)sh_bits(x + 0x1.8p23f);
    }
}

static void hand_out(struct scratch *w, const struct sh_tap *tap, int sequence, int head, int q0, int n_rows)
{
    size_t at = 0;
    for (int i = 0; i < n_rows; i++) {
        const float *s = w->s + (size_t)i * (size_t)w->n_pad, *p = w->p + (size_t)i * (size_t)w->n_pad;
        int n = q0 + i + 1;
        if (tap->pack == SH_PACK_F32)
            pack_f32((float *)(void *)w->packed + at, p, n, 1.0f / w->sum[i]);
        else if (tap->pack == SH_PACK_F16)
            pack_f16((uint16_t *)(void *)w->packed + at, p, n, 1.0f / w->sum[i]);
        else
            pack_log8(w->packed + at, s, n, w->top[i] + logf(w->sum[i]));
        at += (size_t)n;
    }
    tap->rows(tap->to, sequence, head, q0, n_rows, w->packed);
}

static void store_out(const struct scratch *w, const struct sh_attend *a, int row, int head, int i)
{
    const float *o = w->o + (size_t)i * (size_t)w->d_pad;
    float inverse = 1.0f / w->sum[i];
    size_t at = (size_t)row * a->out.stride + (size_t)head * (size_t)a->d_head;
    for (int c = 0; c < a->d_head; c++) {
        if (a->out.type == SH_F32)
            ((float *)a->out.at)[at + (size_t)c] = o[c] * inverse;
        else
            ((uint16_t *)a->out.at)[at + (size_t)c] = sh_f32_to_bf16(o[c] * inverse);
    }
}

static void query_block(struct scratch *w, const struct sh_attend *a, int sequence, int head, int q0, int n_rows)
{
    int row0 = a->start[sequence], width = padded(q0 + n_rows), d = a->d_head;
    for (int i = 0; i < n_rows; i++) {
        const float *q = at_row(&a->q, row0 + q0 + i, head * d);
        for (int c = 0; c < d; c++)
            w->q[i * d + c] = q[c] * a->scale;
    }
    for (int i = 0; i < n_rows; i += ROWS)
        for (int j = 0; j < width; j += COLS)
            tile(w->s + (size_t)i * (size_t)w->n_pad + j, w->n_pad, w->q + i * d, d, w->kt + j, w->n_pad, d);
    softmax_rows(w, q0, n_rows, width);
    for (int i = 0; i < n_rows && a->out.at; i += ROWS)
        for (int c = 0; c < w->d_pad; c += COLS)
            tile(w->o + (size_t)i * (size_t)w->d_pad + c, w->d_pad, w->p + (size_t)i * (size_t)w->n_pad,
                 w->n_pad, w->v + c, w->d_pad, q0 + n_rows);
    for (int i = 0; i < n_rows && a->out.at; i++)
        store_out(w, a, row0 + q0 + i, head, i);
    if (a->tap.rows && (!a->tap.wanted || a->tap.wanted[sequence]))
        hand_out(w, &a->tap, sequence, head, q0, n_rows);
}

static void scratch_new(struct scratch *w, int longest, int d_head)
{
    /* One register tile more than needed: rows that lie 4096 bytes apart would share their cache sets. */
    size_t n = (size_t)(w->n_pad = padded(longest) + COLS), d = (size_t)(w->d_pad = padded(d_head));
    w->kt = xaligned((size_t)d_head * n * sizeof(float));
    w->v = xaligned(n * d * sizeof(float));
    w->q = xaligned((size_t)BLOCK * (size_t)d_head * sizeof(float));
    w->s = xaligned(BLOCK * n * sizeof(float));
    w->p = xaligned(BLOCK * n * sizeof(float));
    w->o = xaligned(BLOCK * d * sizeof(float));
    w->packed = xaligned(BLOCK * n * sizeof(float));
    memset(w->q, 0, (size_t)BLOCK * (size_t)d_head * sizeof(float));
    memset(w->p, 0, BLOCK * n * sizeof(float));
}

static void scratch_free(struct scratch *w)
{
    free(w->kt);
    free(w->v);
    free(w->q);
    free(w->s);
    free(w->p);
    free(w->o);
    free(w->packed);
}

int CPU_NAME(cpu_attend)(const struct sh_attend *a, int n_threads)
{
    int longest = 0, faulty = 0, group = a->n_head / a->n_kv_head, n_work = a->n_seq * a->n_kv_head;
    for (int s = 0; s < a->n_seq; s++)
        if (a->start[s + 1] - a->start[s] > longest)
            longest = a->start[s + 1] - a->start[s];
#pragma omp parallel num_threads(n_threads)
    {
        struct scratch w = {0};
        scratch_new(&w, longest, a->d_head);
#pragma omp for schedule(dynamic, 1)
        for (int work = 0; work < n_work; work++) {
            int sequence = work / a->n_kv_head, kv_head = work % a->n_kv_head;
            int n = a->start[sequence + 1] - a->start[sequence];
            load_keys_values(&w, a, a->start[sequence], n, kv_head);
            for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
                for (int q0 = 0; q0 < n; q0 += BLOCK)
                    query_block(&w, a, sequence, head, q0, n - q0 < BLOCK ? n - q0 : BLOCK);
            if (w.faulty) {
#pragma omp critical
                faulty = sequence + 1;
            }
        }
        scratch_free(&w);
    }
    return faulty;
}
