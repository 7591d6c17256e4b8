/* SPDX-License-Identifier: Apache-2.0 */
/* See row_bits.h. Comparisons are exact, so every variant gives the same bits. */
#include "src/base/row_bits.h"

#ifdef __x86_64__
#include <immintrin.h>

static inline uint64_t bits_16(__m128 a, __m128 b, __m128 c, __m128 d)
{
    __m128i ab = _mm_packs_epi32(_mm_castps_si128(a), _mm_castps_si128(b));
    __m128i cd = _mm_packs_epi32(_mm_castps_si128(c), _mm_castps_si128(d));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(ab, cd));
}

static inline uint64_t above_limit(const float *x, float limit)
{
    __m128 l = _mm_set1_ps(limit);
    uint64_t word = 0;
    for (int i = 0; i < 64; i += 16)
        word |= bits_16(_mm_cmplt_ps(l, _mm_loadu_ps(x + i)),
                        _mm_cmplt_ps(l, _mm_loadu_ps(x + i + 4)),
                        _mm_cmplt_ps(l, _mm_loadu_ps(x + i + 8)),
                        _mm_cmplt_ps(l, _mm_loadu_ps(x + i + 12))) << i;
    return word;
}

static inline uint64_t below_limit(const float *x, float limit)
{
    __m128 l = _mm_set1_ps(limit);
    uint64_t word = 0;
    for (int i = 0; i < 64; i += 16)
        word |= bits_16(_mm_cmpgt_ps(l, _mm_loadu_ps(x + i)),
                        _mm_cmpgt_ps(l, _mm_loadu_ps(x + i + 4)),
                        _mm_cmpgt_ps(l, _mm_loadu_ps(x + i + 8)),
                        _mm_cmpgt_ps(l, _mm_loadu_ps(x + i + 12))) << i;
    return word;
}

__attribute__((target("avx512f")))
static void wide(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                 uint64_t *above, size_t stride)
{
    __m512 least = _mm512_set1_ps(low);
    for (size_t w = 0; w < n_word; w++, x += 64) {
        __m512 part[4];
        uint64_t word = 0;
        for (int i = 0; i < 4; i++) {
            part[i] = _mm512_loadu_ps(x + 16 * i);
            word |= (uint64_t)_mm512_cmp_ps_mask(part[i], least, _CMP_LT_OQ) << 16 * i;
        }
        above[(size_t)n_limit * stride + w] = word;
        for (int k = 0; k < n_limit; k++) {
            __m512 l = _mm512_set1_ps(limit[k]);
            word = 0;
            for (int i = 0; i < 4; i++)
                word |= (uint64_t)_mm512_cmp_ps_mask(part[i], l, _CMP_GT_OQ) << 16 * i;
            above[(size_t)k * stride + w] = word;
        }
    }
}
#else
static inline uint64_t above_limit(const float *x, float limit)
{
    uint64_t word = 0;
    for (int i = 0; i < 64; i++)
        word |= (uint64_t)(x[i] > limit) << i;
    return word;
}

static inline uint64_t below_limit(const float *x, float limit)
{
    uint64_t word = 0;
    for (int i = 0; i < 64; i++)
        word |= (uint64_t)(x[i] < limit) << i;
    return word;
}
#endif

static void narrow(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                   uint64_t *above, size_t stride)
{
    for (size_t w = 0; w < n_word; w++, x += 64) {
        for (int k = 0; k < n_limit; k++)
            above[(size_t)k * stride + w] = above_limit(x, limit[k]);
        above[(size_t)n_limit * stride + w] = below_limit(x, low);
    }
}

void sh_row_bits(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                 uint64_t *above, size_t stride)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        wide(x, n_word, limit, n_limit, low, above, stride);
        return;
    }
#endif
    narrow(x, n_word, limit, n_limit, low, above, stride);
}
