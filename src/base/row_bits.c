/* SPDX-License-Identifier: Apache-2.0 */
/* See row_figures.h. Comparisons are exact, so every variant gives the same bits. Limits are taken from the lowest up:
 * where no score of a word is above one, none is above the next. */
#include "src/base/row_figures.h"

#include <string.h>

enum { MOST_LIMITS = 64 };

struct limits {                         /* ascending                                              */
    int n;
    float value[MOST_LIMITS];
    uint64_t *above[MOST_LIMITS], *low; /* their words                                            */
};

/* No score of the word is above the limits from k on. */
static inline void put_none(const struct limits *l, int k, size_t w)
{
    for (; k < l->n; k++)
        l->above[k][w] = 0;
}

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

/* Two halves of a word: joining them would cost more than storing them. Tells whether there is a bit. */
__attribute__((target("avx512f,avx512bw")))
static inline int put_halves(uint64_t *to, __mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d)
{
    uint32_t half[2] = {_mm512_kunpackw((__mmask32)b, (__mmask32)a), _mm512_kunpackw((__mmask32)d, (__mmask32)c)};
    memcpy(to, half, sizeof half[0]);
    memcpy((char *)to + sizeof half[0], half + 1, sizeof half[1]);
    return (half[0] | half[1]) != 0;
}

#define PUT_512(to, compare) put_halves(to, compare(0), compare(1), compare(2), compare(3))

__attribute__((target("avx512f,avx512bw")))
static void wide(const float *x, size_t n_word, const struct limits *l, float low)
{
    const __m512 least = _mm512_set1_ps(low);
    for (size_t w = 0; w < n_word; w++, x += 64) {
        const __m512 part[4] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32),
                                _mm512_loadu_ps(x + 48)};
#define BELOW(i) _mm512_cmp_ps_mask(part[i], least, _CMP_LT_OQ)
        PUT_512(l->low + w, BELOW);
        for (int k = 0; k < l->n; k++) {
            const __m512 limit = _mm512_set1_ps(l->value[k]);
#define ABOVE(i) _mm512_cmp_ps_mask(part[i], limit, _CMP_GT_OQ)
            int some = PUT_512(l->above[k] + w, ABOVE);
            if (!k && !some) {                          /* asked for once: who guesses wrongly loses more */
                put_none(l, 1, w);
                break;
            }
        }
    }
}

/* The signs of four registers, 32 scores, as bits in their order. */
#define BITS_256(a, b, c, d)                                                                                  \
    ((uint32_t)_mm256_movemask_epi8(_mm256_permutevar8x32_epi32(                                             \
        _mm256_packs_epi16(_mm256_packs_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)),               \
                           _mm256_packs_epi32(_mm256_castps_si256(c), _mm256_castps_si256(d))),              \
        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))))

__attribute__((target("avx2")))
static void middle(const float *x, size_t n_word, const struct limits *l, float low)
{
    const __m256 least = _mm256_set1_ps(low);
    for (size_t w = 0; w < n_word; w++, x += 64) {
        uint64_t word = 0;
#define BELOW_8(i) _mm256_cmp_ps(_mm256_loadu_ps(x + (i)), least, _CMP_LT_OQ)
        word = BITS_256(BELOW_8(0), BELOW_8(8), BELOW_8(16), BELOW_8(24));
        word |= (uint64_t)BITS_256(BELOW_8(32), BELOW_8(40), BELOW_8(48), BELOW_8(56)) << 32;
        l->low[w] = word;
        word = 1;
        int k = 0;
        for (; k < l->n && word; k++) {
            const __m256 limit = _mm256_set1_ps(l->value[k]);
#define ABOVE_8(i) _mm256_cmp_ps(_mm256_loadu_ps(x + (i)), limit, _CMP_GT_OQ)
            word = BITS_256(ABOVE_8(0), ABOVE_8(8), ABOVE_8(16), ABOVE_8(24));
            word |= (uint64_t)BITS_256(ABOVE_8(32), ABOVE_8(40), ABOVE_8(48), ABOVE_8(56)) << 32;
            l->above[k][w] = word;
        }
        put_none(l, k, w);
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

static void narrow(const float *x, size_t n_word, const struct limits *l, float low)
{
    for (size_t w = 0; w < n_word; w++, x += 64) {
        uint64_t word = 1;
        int k = 0;
        for (; k < l->n && word; k++)
            word = l->above[k][w] = above_limit(x, l->value[k]);
        put_none(l, k, w);
        l->low[w] = below_limit(x, low);
    }
}

void sh_row_bits(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                 uint64_t *above, size_t stride)
{
    struct limits l = {.n = n_limit, .low = above + (size_t)n_limit * stride};
    for (int k = 0, at; k < n_limit; k++) {
        for (at = k; at > 0 && l.value[at - 1] > limit[k]; at--) {
            l.value[at] = l.value[at - 1];
            l.above[at] = l.above[at - 1];
        }
        l.value[at] = limit[k];
        l.above[at] = above + (size_t)k * stride;
    }
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw")) {
        wide(x, n_word, &l, low);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        middle(x, n_word, &l, low);
        return;
    }
#endif
    narrow(x, n_word, &l, low);
}
