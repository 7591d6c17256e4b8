/* SPDX-License-Identifier: Apache-2.0 */
/* 16 lanes of 32 bits: a vector of AVX-512, or two of AVX2. */
#ifndef SH_KERNELS_CPU_LANES_H
#define SH_KERNELS_CPU_LANES_H

#ifdef __AVX2__
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16 };

#define LANE static inline __attribute__((always_inline))

/* There are instructions that multiply pairs of bytes and add the products in fours: VNNI. With AVX-512 functions ask
 * for them (lane_run.h). */
#if defined __AVX512F__ || defined __AVXVNNI__
#define HAS_DOTS
#endif

#ifdef __AVX512F__

typedef __m512i lane_ints;
typedef __m512 lane_floats;

#define LANE_INTS(name, of) LANE lane_ints ints_##name(lane_ints a, lane_ints b) { return of(a, b); }
LANE_INTS(and, _mm512_and_si512)
LANE_INTS(or, _mm512_or_si512)
LANE_INTS(xor, _mm512_xor_si512)
LANE_INTS(add, _mm512_add_epi32)
LANE_INTS(sub, _mm512_sub_epi32)
LANE_INTS(shuffle, _mm512_shuffle_epi8)     /* bytes of each 128 bits */
#undef LANE_INTS

LANE lane_ints ints_load(const void *at) { return _mm512_loadu_si512(at); }
LANE void ints_store(void *at, lane_ints a) { _mm512_storeu_si512(at, a); }
LANE lane_ints ints_set(int32_t x) { return _mm512_set1_epi32(x); }
LANE lane_ints bytes_set(int x) { return _mm512_set1_epi8((char)x); }
LANE lane_ints pairs_set(int x) { return _mm512_set1_epi16((short)x); }
LANE lane_ints pairs_multiply(lane_ints a, lane_ints b) { return _mm512_mullo_epi16(a, b); }
LANE lane_ints pairs_multiply_high(lane_ints a, lane_ints b) { return _mm512_mulhi_epu16(a, b); }
LANE lane_ints ints_left(lane_ints a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
LANE lane_ints ints_right(lane_ints a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
LANE lane_ints ints_right_signed(lane_ints a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
LANE lane_ints ints_repeat(__m128i x) { return _mm512_broadcast_i32x4(x); }
LANE lane_ints ints_of_bytes(const void *at) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)at)); }

/* a, and `more` added to its bytes where a bit is set; bits: one of each byte. */
LANE lane_ints bytes_add_where(lane_ints a, int more, lane_ints bytes, int32_t bits)
{
    return _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(bytes, _mm512_set1_epi32(bits)), a, bytes_set(more));
}

/* The bytes of a, less than 0 where a bit is set. */
LANE lane_ints bytes_less_where(lane_ints a, lane_ints bytes, int32_t bits)
{
    __mmask64 is_less = _mm512_test_epi8_mask(bytes, _mm512_set1_epi32(bits));
    return _mm512_mask_sub_epi8(a, is_less, _mm512_setzero_si512(), a);
}

LANE lane_ints ints_of_parts(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* a, and in each lane the sum of four products of unsigned bytes and signed ones. */
#define ints_add_dots _mm512_dpbusd_epi32

LANE lane_floats floats_set(float x) { return _mm512_set1_ps(x); }
LANE lane_floats floats_load(const float *at) { return _mm512_loadu_ps(at); }
LANE void floats_store(float *at, lane_floats a) { _mm512_storeu_ps(at, a); }
LANE lane_floats floats_of(lane_ints a) { return _mm512_cvtepi32_ps(a); }
LANE lane_floats floats_as(lane_ints a) { return _mm512_castsi512_ps(a); }
LANE lane_floats floats_mul(lane_floats a, lane_floats b) { return _mm512_mul_ps(a, b); }
LANE lane_floats floats_sub(lane_floats a, lane_floats b) { return _mm512_sub_ps(a, b); }
LANE lane_floats floats_add_mul(lane_floats a, lane_floats b, lane_floats c) { return _mm512_fmadd_ps(b, c, a); }
LANE lane_floats floats_sub_mul(lane_floats a, lane_floats b, lane_floats c) { return _mm512_fnmadd_ps(b, c, a); }

/* `at`, which the compiler takes to depend on `a`: memory there is not asked for before `a` has been computed. */
LANE const unsigned char *after_floats(const unsigned char *at, lane_floats *a)
{
    __asm__("" : "+r"(at), "+v"(*a));
    return at;
}

/* f16 numbers: 16 neighbours; those in the lower half of each lane. */
LANE lane_floats floats_of_halves(__m256i a) { return _mm512_cvtph_ps(a); }
LANE lane_floats floats_load_halves(const void *at) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)at)); }
LANE lane_floats floats_of_low(lane_ints a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }

/* Where a < b: x << a; else c. */
LANE lane_ints ints_less_left(lane_ints a, int b, int32_t x, lane_ints c)
{
    return _mm512_mask_sllv_epi32(c, _mm512_cmplt_epi32_mask(a, ints_set(b)), ints_set(x), a);
}

#else

typedef struct { __m256i v[2]; } lane_ints;
typedef struct { __m256 v[2]; } lane_floats;

#define LANE_INTS(name, of) \
    LANE lane_ints name(lane_ints a, lane_ints b) \
    { \
        return (lane_ints){{of(a.v[0], b.v[0]), of(a.v[1], b.v[1])}}; \
    }
LANE_INTS(ints_and, _mm256_and_si256)
LANE_INTS(ints_or, _mm256_or_si256)
LANE_INTS(ints_xor, _mm256_xor_si256)
LANE_INTS(ints_add, _mm256_add_epi32)
LANE_INTS(ints_sub, _mm256_sub_epi32)
LANE_INTS(ints_shuffle, _mm256_shuffle_epi8)
LANE_INTS(ints_multiply_add, _mm256_madd_epi16)             /* of pairs of 16-bit numbers                    */
LANE_INTS(ints_multiply_add_bytes, _mm256_maddubs_epi16)    /* unsigned ones and signed ones; 16-bit numbers */
LANE_INTS(pairs_add, _mm256_add_epi16)                      /* pairs_: of 16-bit numbers, modulo 2^16        */
LANE_INTS(pairs_sub, _mm256_sub_epi16)
LANE_INTS(pairs_multiply, _mm256_mullo_epi16)
LANE_INTS(pairs_multiply_high, _mm256_mulhi_epu16)          /* unsigned; the upper halves                    */
LANE_INTS(bytes_sub, _mm256_sub_epi8)
#undef LANE_INTS

#define LANE_SHIFT(name, of) \
    LANE lane_ints name(lane_ints a, int n) { return (lane_ints){{of(a.v[0], n), of(a.v[1], n)}}; }
LANE_SHIFT(ints_left, _mm256_slli_epi32)
LANE_SHIFT(ints_right, _mm256_srli_epi32)
LANE_SHIFT(ints_right_signed, _mm256_srai_epi32)
LANE_SHIFT(pairs_right, _mm256_srli_epi16)
LANE_SHIFT(pairs_right_signed, _mm256_srai_epi16)
#undef LANE_SHIFT

LANE lane_ints ints_same(__m256i x) { return (lane_ints){{x, x}}; }
LANE lane_ints ints_set(int32_t x) { return ints_same(_mm256_set1_epi32(x)); }
LANE lane_ints pairs_set(int x) { return ints_same(_mm256_set1_epi16((short)x)); }
LANE lane_ints bytes_set(int x) { return ints_same(_mm256_set1_epi8((char)x)); }
LANE lane_ints ints_repeat(__m128i x) { return ints_same(_mm256_broadcastsi128_si256(x)); }

LANE lane_ints ints_load(const void *at)
{
    const __m256i *v = (const __m256i *)at;
    return (lane_ints){{_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)}};
}

LANE void ints_store(void *at, lane_ints a)
{
    __m256i *v = (__m256i *)at;
    _mm256_storeu_si256(v, a.v[0]);
    _mm256_storeu_si256(v + 1, a.v[1]);
}

LANE lane_ints ints_of_bytes(const void *at)
{
    __m128i x = _mm_loadu_si128((const __m128i *)at);
    return (lane_ints){{_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(x, x))}};
}

LANE lane_ints bytes_add_where(lane_ints a, int more, lane_ints bytes, int32_t bits)
{
    __m256i bit = _mm256_set1_epi32(bits), by = _mm256_set1_epi8((char)more);
    for (int i = 0; i < 2; i++) {
        __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes.v[i], bit), bit);
        a.v[i] = _mm256_add_epi8(a.v[i], _mm256_and_si256(is_set, by));
    }
    return a;
}

LANE lane_ints bytes_less_where(lane_ints a, lane_ints bytes, int32_t bits)
{
    __m256i bit = _mm256_set1_epi32(bits);
    for (int i = 0; i < 2; i++) {
        __m256i is_less = _mm256_cmpeq_epi8(_mm256_and_si256(bytes.v[i], bit), bit);
        a.v[i] = _mm256_sub_epi8(_mm256_xor_si256(a.v[i], is_less), is_less);
    }
    return a;
}

LANE lane_ints ints_of_parts(__m256i low, __m256i high) { return (lane_ints){{low, high}}; }

LANE lane_floats floats_of_halves(__m256i a)
{
    return (lane_floats){{_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))}};
}

LANE lane_floats floats_load(const float *at)
{
    return (lane_floats){{_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)}};
}

#ifdef HAS_DOTS
LANE lane_ints ints_add_dots(lane_ints a, lane_ints bytes, lane_ints signed_bytes)
{
    for (int i = 0; i < 2; i++)
        a.v[i] = _mm256_dpbusd_avx_epi32(a.v[i], bytes.v[i], signed_bytes.v[i]);
    return a;
}
#endif

LANE lane_floats floats_set(float x) { return (lane_floats){{_mm256_set1_ps(x), _mm256_set1_ps(x)}}; }

LANE void floats_store(float *at, lane_floats a)
{
    _mm256_storeu_ps(at, a.v[0]);
    _mm256_storeu_ps(at + 8, a.v[1]);
}

LANE lane_floats floats_of(lane_ints a)
{
    return (lane_floats){{_mm256_cvtepi32_ps(a.v[0]), _mm256_cvtepi32_ps(a.v[1])}};
}

LANE lane_floats floats_as(lane_ints a)
{
    return (lane_floats){{_mm256_castsi256_ps(a.v[0]), _mm256_castsi256_ps(a.v[1])}};
}

LANE lane_floats floats_mul(lane_floats a, lane_floats b)
{
    return (lane_floats){{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}};
}

LANE lane_floats floats_sub(lane_floats a, lane_floats b)
{
    return (lane_floats){{_mm256_sub_ps(a.v[0], b.v[0]), _mm256_sub_ps(a.v[1], b.v[1])}};
}

LANE lane_floats floats_add_mul(lane_floats a, lane_floats b, lane_floats c)
{
    return (lane_floats){{_mm256_fmadd_ps(b.v[0], c.v[0], a.v[0]), _mm256_fmadd_ps(b.v[1], c.v[1], a.v[1])}};
}

LANE lane_floats floats_sub_mul(lane_floats a, lane_floats b, lane_floats c)
{
    return (lane_floats){{_mm256_fnmadd_ps(b.v[0], c.v[0], a.v[0]), _mm256_fnmadd_ps(b.v[1], c.v[1], a.v[1])}};
}

LANE const unsigned char *after_floats(const unsigned char *at, lane_floats *a)
{
    __asm__("" : "+r"(at), "+x"(a->v[0]), "+x"(a->v[1]));
    return at;
}

LANE lane_floats floats_load_halves(const void *at)
{
    const __m128i *v = (const __m128i *)at;
    return (lane_floats){{_mm256_cvtph_ps(_mm_loadu_si128(v)), _mm256_cvtph_ps(_mm_loadu_si128(v + 1))}};
}

LANE lane_floats floats_of_low(lane_ints a)
{
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i all = _mm256_packus_epi32(_mm256_and_si256(a.v[0], low), _mm256_and_si256(a.v[1], low));
    all = _mm256_permute4x64_epi64(all, 0xd8);
    __m128i low8 = _mm256_castsi256_si128(all), high8 = _mm256_extracti128_si256(all, 1);
    return (lane_floats){{_mm256_cvtph_ps(low8), _mm256_cvtph_ps(high8)}};
}

LANE lane_ints ints_less_left(lane_ints a, int b, int32_t x, lane_ints c)
{
    for (int i = 0; i < 2; i++) {
        __m256i is_less = _mm256_cmpgt_epi32(_mm256_set1_epi32(b), a.v[i]);
        c.v[i] = _mm256_blendv_epi8(c.v[i], _mm256_sllv_epi32(_mm256_set1_epi32(x), a.v[i]), is_less);
    }
    return c;
}

#endif

LANE lane_ints masked(lane_ints word, int mask)
{
    return ints_and(word, bytes_set(mask));
}

/* Bits of each byte from bit `from` on, moved to bit `to`; mask: which of them, there. */
LANE lane_ints moved(lane_ints word, int from, int to, int mask)
{
    return masked(to > from ? ints_left(word, to - from) : from > to ? ints_right(word, from - to) : word, mask);
}

#endif
#endif
