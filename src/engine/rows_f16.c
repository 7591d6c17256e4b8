/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. Sums have the order of slots_attend.c: 16 parts, halved until one number is left; multiplied
 * and added apart. */
#include "src/engine/rows.h"

#include <assert.h>

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

#define WITH_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))

enum { LANES = 16, AHEAD = 2048 };      /* bytes */

int sh_rows_f16_fit(int d)
{
    return d > 0 && d % LANES == 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

WITH_AVX512 static inline __m512 widened(const uint16_t *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

/* Four totals of 16 parts each. */
WITH_AVX512 static inline __m128 totals(const __m512 *x)
{
    __m256 eight[4];
    __m128 four[4];
    for (int k = 0; k < 4; k++) {
        eight[k] = _mm256_add_ps(_mm512_castps512_ps256(x[k]), _mm512_extractf32x8_ps(x[k], 1));
        four[k] = _mm_add_ps(_mm256_castps256_ps128(eight[k]), _mm256_extractf128_ps(eight[k], 1));
    }
    /* (0 + 2) and (1 + 3) of rows 0 and 1, then of rows 2 and 3 */
    __m128 low = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    __m128 high = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    return _mm_add_ps(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)),
                      _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
}

WITH_AVX512 void sh_rows_f16_products(const float *q, const uint16_t *k, float scale, int n, int d, float *score)
{
    for (int j = 0; j < n; j += 4) {
        const uint16_t *row[4];
        __m512 part[4];
        for (int r = 0; r < 4; r++) {
            row[r] = k + (size_t)(j + r < n ? j + r : j) * (size_t)d;
            part[r] = _mm512_setzero_ps();
        }
        for (int i = 0; i < d; i += LANES) {
            __m512 x = _mm512_loadu_ps(q + i);
            for (int r = 0; r < 4; r++)
                part[r] = _mm512_add_ps(part[r], _mm512_mul_ps(x, widened(row[r] + i)));
        }
        for (int i = 0; i < 4 * d; i += 32)
            __builtin_prefetch((const char *)(k + (size_t)j * (size_t)d + i) + AHEAD);
        __m128 sum = _mm_mul_ps(_mm_set1_ps(scale), totals(part));
        _mm_mask_storeu_ps(score + j, (__mmask8)(n - j < 4 ? (1 << (n - j)) - 1 : 15), sum);
    }
}

/* Channels that stay in registers. */
WITH_AVX512 static inline __attribute__((always_inline)) void mix_some(const float *p, const uint16_t *v, int n,
                                                                       size_t d, int vectors, float *out)
{
    __m512 sum[4];
    for (int c = 0; c < vectors; c++)
        sum[c] = _mm512_loadu_ps(out + c * LANES);
    for (int j = 0; j < n; j++, v += d) {
        __m512 by = _mm512_set1_ps(p[j]);
        for (int c = 0; c < vectors; c++)
            sum[c] = _mm512_add_ps(sum[c], _mm512_mul_ps(by, widened(v + c * LANES)));
        for (int c = 0; c < vectors; c += 2)
            __builtin_prefetch((const char *)(v + c * LANES) + AHEAD);
    }
    for (int c = 0; c < vectors; c++)
        _mm512_storeu_ps(out + c * LANES, sum[c]);
}

WITH_AVX512 void sh_rows_f16_mix(const float *p, const uint16_t *v, int n, int d, float *out)
{
    int c = 0;
    for (; c + 4 * LANES <= d; c += 4 * LANES)
        mix_some(p, v + c, n, (size_t)d, 4, out + c);
    for (; c < d; c += LANES)
        mix_some(p, v + c, n, (size_t)d, 1, out + c);
}
#else
int sh_rows_f16_fit(int d) { (void)d; return 0; }

void sh_rows_f16_products(const float *q, const uint16_t *k, float scale, int n, int d, float *score)
{
    (void)q; (void)k; (void)scale; (void)n; (void)d; (void)score;
    assert(0);                          /* sh_rows_f16_fit says no */
}

void sh_rows_f16_mix(const float *p, const uint16_t *v, int n, int d, float *out)
{
    (void)p; (void)v; (void)n; (void)d; (void)out;
    assert(0);
}
#endif
