/* SPDX-License-Identifier: Apache-2.0 */
/* See simd_gather.h. */
#include "planner/policy/simd_gather.h"

#ifdef SH_GATHER_WIDE
#include <immintrin.h>
#endif

/* Four at once, so that the loop itself costs little. */
#define GATHER(name, number)                                                                              \
    static void name(number *restrict to, const number *restrict from, const int *restrict at, int n)     \
    {                                                                                                     \
        int i = 0;                                                                                        \
        for (; i + 4 <= n; i += 4) {                                                                      \
            number a = from[at[i]], b = from[at[i + 1]], c = from[at[i + 2]], d = from[at[i + 3]];        \
            to[i] = a;                                                                                    \
            to[i + 1] = b;                                                                                \
            to[i + 2] = c;                                                                                \
            to[i + 3] = d;                                                                                \
        }                                                                                                 \
        for (; i < n; i++)                                                                                \
            to[i] = from[at[i]];                                                                          \
    }
GATHER(floats, float)
GATHER(pairs, int64_t)

#ifdef SH_GATHER_WIDE
int sh_simd_gather_is_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}

SH_GATHER_WIDE static void floats_wide(float *to, const float *from, const int *at, int n)
{
    int whole = n / 16 * 16;
    for (int i = 0; i < whole; i += 16)
        _mm512_storeu_ps(to + i, _mm512_i32gather_ps(_mm512_loadu_si512(at + i), from, 4));
    __mmask16 rest = (__mmask16)((1u << (n - whole)) - 1);
    if (rest) {
        __m512i places = _mm512_maskz_loadu_epi32(rest, at + whole);
        _mm512_mask_storeu_ps(to + whole, rest, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), rest, places, from, 4));
    }
}

SH_GATHER_WIDE static void pairs_wide(int64_t *to, const int64_t *from, const int *at, int n)
{
    int whole = n / 8 * 8;
    for (int i = 0; i < whole; i += 8)
        _mm512_storeu_si512(to + i, _mm512_i32gather_epi64(_mm256_loadu_si256((const __m256i *)(at + i)), from, 8));
    pairs(to + whole, from, at + whole, n - whole);
}
#else
int sh_simd_gather_is_wide(void)
{
    return 0;
}

#define floats_wide floats
#define pairs_wide pairs
#endif

void sh_simd_gather(float *to, const float *from, const int *at, int n)
{
    (sh_simd_gather_is_wide() ? floats_wide : floats)(to, from, at, n);
}

void sh_simd_gather_pairs(int64_t *to, const int64_t *from, const int *at, int n)
{
    (sh_simd_gather_is_wide() ? pairs_wide : pairs)(to, from, at, n);
}
