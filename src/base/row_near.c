/* SPDX-License-Identifier: Apache-2.0 */
/* See row_figures.h. */
#include "src/base/row_figures.h"

#include <stdint.h>

static inline void take(struct sh_row_near *near, float x, float low, float high)
{
    if (x >= high) {
        near->above++;
        near->sum += (double)x;
    } else if (x >= low) {
        if (near->n < SH_ROW_NEAR)
            near->score[near->n] = x;
        near->n++;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

static inline float *end_of(struct sh_row_near *near)   /* where there is room for 16 */
{
    return near->score + (near->n < SH_ROW_NEAR ? near->n : SH_ROW_NEAR);
}

/* These give how many scores they have taken, from the first one on. */
__attribute__((target("avx512f,avx512dq,popcnt")))
static int take_512(const float *row, int n, float low, float high, struct sh_row_near *near)
{
    const __m512 from = _mm512_set1_ps(low), to = _mm512_set1_ps(high);
    __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 x = _mm512_loadu_ps(row + i);
        __mmask16 above = _mm512_cmp_ps_mask(x, to, _CMP_GE_OQ);
        __mmask16 between = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, from, _CMP_GE_OQ), x, to, _CMP_LT_OQ);
        __m512 largest = _mm512_maskz_mov_ps(above, x);
        sum[0] = _mm512_add_pd(sum[0], _mm512_cvtps_pd(_mm512_castps512_ps256(largest)));
        sum[1] = _mm512_add_pd(sum[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(largest, 1)));
        _mm512_storeu_ps(end_of(near), _mm512_maskz_compress_ps(between, x));
        near->above += _mm_popcnt_u32(above);
        near->n += _mm_popcnt_u32(between);
    }
    near->sum += _mm512_reduce_add_pd(_mm512_add_pd(sum[0], sum[1]));
    return i;
}

/* By a mask of eight: the places of its bits, a byte each. */
#define PLACE(m, i) ((uint64_t)((m) >> (i) & 1) * (i) << 8 * __builtin_popcount((m) & ((1 << (i)) - 1)))
#define PLACES(m)                                                                                             \
    (PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7))
#define MASKS_4(m) PLACES(m), PLACES((m) + 1), PLACES((m) + 2), PLACES((m) + 3)
#define MASKS_16(m) MASKS_4(m), MASKS_4((m) + 4), MASKS_4((m) + 8), MASKS_4((m) + 12)
#define MASKS_64(m) MASKS_16(m), MASKS_16((m) + 16), MASKS_16((m) + 32), MASKS_16((m) + 48)
static const uint64_t places[256] = {MASKS_64(0), MASKS_64(64), MASKS_64(128), MASKS_64(192)};

__attribute__((target("avx2,popcnt")))
static int take_256(const float *row, int n, float low, float high, struct sh_row_near *near)
{
    const __m256 from = _mm256_set1_ps(low), to = _mm256_set1_ps(high);
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    double part[4];
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_loadu_ps(row + i), above = _mm256_cmp_ps(x, to, _CMP_GE_OQ);
        __m256 between = _mm256_and_ps(_mm256_cmp_ps(x, from, _CMP_GE_OQ), _mm256_cmp_ps(x, to, _CMP_LT_OQ));
        __m256 largest = _mm256_and_ps(above, x);
        sum[0] = _mm256_add_pd(sum[0], _mm256_cvtps_pd(_mm256_castps256_ps128(largest)));
        sum[1] = _mm256_add_pd(sum[1], _mm256_cvtps_pd(_mm256_extractf128_ps(largest, 1)));
        int mask = _mm256_movemask_ps(between);
        __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(places + mask)));
        _mm256_storeu_ps(end_of(near), _mm256_permutevar8x32_ps(x, order));
        near->above += _mm_popcnt_u32((unsigned)_mm256_movemask_ps(above));
        near->n += _mm_popcnt_u32((unsigned)mask);
    }
    _mm256_storeu_pd(part, _mm256_add_pd(sum[0], sum[1]));
    near->sum += part[0] + part[1] + part[2] + part[3];
    return i;
}

static int take_128(const float *row, int n, float low, float high, struct sh_row_near *near)
{
    const __m128 from = _mm_set1_ps(low), to = _mm_set1_ps(high);
    __m128d sum[2] = {_mm_setzero_pd(), _mm_setzero_pd()};
    __m128i count = _mm_setzero_si128();
    int32_t part[4];
    double half[2];
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        __m128 x = _mm_loadu_ps(row + i), above = _mm_cmpge_ps(x, to), largest = _mm_and_ps(above, x);
        sum[0] = _mm_add_pd(sum[0], _mm_cvtps_pd(largest));
        sum[1] = _mm_add_pd(sum[1], _mm_cvtps_pd(_mm_movehl_ps(largest, largest)));
        count = _mm_sub_epi32(count, _mm_castps_si128(above));
        int between = _mm_movemask_ps(_mm_and_ps(_mm_cmpge_ps(x, from), _mm_cmplt_ps(x, to)));
        for (; between; between &= between - 1, near->n++)
            *end_of(near) = row[i + __builtin_ctz((unsigned)between)];
    }
    _mm_storeu_si128((__m128i *)(void *)part, count);
    _mm_storeu_pd(half, _mm_add_pd(sum[0], sum[1]));
    near->above += part[0] + part[1] + part[2] + part[3];
    near->sum += half[0] + half[1];
    return i;
}
#endif

void sh_row_near(const float *row, int n, float low, float high, struct sh_row_near *near)
{
    int i = 0;
    near->above = near->n = 0;
    near->sum = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512dq"))
        i = take_512(row, n, low, high, near);
    else if (__builtin_cpu_supports("avx2"))
        i = take_256(row, n, low, high, near);
    else
        i = take_128(row, n, low, high, near);
#endif
    for (; i < n; i++)
        take(near, row[i], low, high);
}
