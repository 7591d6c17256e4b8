/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of x for products with outputs in lanes (packed_lanes.h, lane_dot.h).
 *
 * Each 32 numbers, a run, become integers, x = scale * n, as in packed_dots.h. Products of bytes want n as two signed
 * bytes, n = base * high + low.
 *
 * With VNNI the base is 256. With AVX2 alone it is 255, scale = max |x| / 32512, and both bytes lie in -127 .. 127. A
 * lane then has two sums of products with high bytes, and two with low ones. Over a span (half a span for codes of 5
 * bits without offset) each of them fits into 16 bits, for codes of up to 6 bits less their offset. It begins with what
 * the offset gives, and may wrap around before the last product is added. Codes of 8 bits would not fit; AVX2
 * multiplies these by n itself, in 16 bits, and scale = max |x| / 32639.
 *
 * If x is to have 8 bits (sh_open.x_bits), scale = max |x| / 127: then n is the low byte, and the high one is 0. */
#ifndef SH_KERNELS_CPU_LANE_RUN_H
#define SH_KERNELS_CPU_LANE_RUN_H

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/packed_dots.h"

#ifdef __AVX2__

#ifdef __AVX512F__
#define VNNI __attribute__((target("avx512vnni")))
#define LANES_INLINE static inline __attribute__((always_inline, target("avx512vnni")))
#else
#define VNNI
#define LANES_INLINE UNPACK
#endif

enum {
    GROUP = 4, GROUPS = RUN / GROUP,    /* codes of an output in a lane; vectors of a run         */
    BASE = 255                          /* with AVX2 alone                                        */
};

/* A run of a row of x, in the order of codes_of. */
struct lane_run {
    union {
        struct { int8_t high[RUN], low[RUN]; };
        int16_t pairs[RUN];             /* of each four: the first and third, the second and fourth */
    };
    float scale, sum[2];                /* sum of each span: scale * the sum of n                 */
    /* What the sums of each span begin with, of formats with an offset: - lane_offset * the sum of n. With AVX2 alone
     * and in bytes each is two 16-bit numbers, of low bytes in `start`, of high ones in high_start. */
    int32_t start[2];
#ifndef HAS_DOTS
    int32_t high_start[2];
#endif
};

/* What the codes are stored with, as unsigned bytes. */
UNPACK int lane_offset(enum sh_packing format)
{
    return whole_is_signed(format) ? 128 : (int)whole_offset(format);
}

UNPACK int spans_of_run(enum sh_packing format)
{
    return RUN / sh_packing_shape(format).span;
}

/* Whether codes are multiplied as bytes. */
UNPACK int in_bytes(enum sh_packing format)
{
#ifdef HAS_DOTS
    return format < SH_N_PACKING;
#else
    return lane_offset(format) < 128;
#endif
}

/* Whether scales of spans are multiplied as integers, too: with AVX2 alone that costs nothing. */
UNPACK int has_whole_scales(enum sh_packing format)
{
#ifdef HAS_DOTS
    return format >= SH_N_PACKING;
#else
    int is_made = format == SH_PACKED_INT4_128 || format == SH_PACKED_FP4_128;  /* with floats for scales */
    return in_bytes(format) && !has_one_scale(format) && !is_made && scale_of_all(format) < 0;
#endif
}

/* The largest n of integers of so many bits, 16 or 8. */
UNPACK float largest_n(enum sh_packing format, int bits)
{
#ifndef HAS_DOTS
    if (bits == 16 && in_bytes(format))
        return 127 * BASE + 127;
#endif
    (void)format;
    return bits == 8 ? 127 : MOST_N;
}

/* Whether two formats want x alike. */
static inline int same_lanes(enum sh_packing a, enum sh_packing b)
{
    return same_whole(a, b) && lane_offset(a) == lane_offset(b);
}

/* In pairs the even numbers come first. */
UNPACK __m256i even_first(__m256i bytes)
{
    const __m256i even = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
                                          0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bytes, even), 0xd8);
}

/* The scale and sums of a run, of whose halves the sums of n are given. */
UNPACK void put_sums(enum sh_packing format, float scale, int first, int second, struct lane_run *to)
{
    int sum[2] = {spans_of_run(format) == 1 ? first + second : first, second};
    to->scale = scale;
    for (int i = 0; i < 2; i++) {
        to->start[i] = -lane_offset(format) * sum[i];
        to->sum[i] = scale * (float)sum[i];
    }
}

#ifdef __AVX512F__

UNPACK void put_lane_run(enum sh_packing format, int bits, const float *x, struct lane_run *to)
{
    float most = largest(x), most_n = largest_n(format, bits), inverse = most >= 0x1p-100f ? most_n / most : 0;
    int is_number = most < INFINITY, sum[2];
    __mmask16 some = is_number ? 0xffff : 0;
    __m128i high[2], low[2];
    for (int i = 0; i < 2; i++) {
        __m512i n = _mm512_maskz_cvtps_epi32(some, _mm512_mul_ps(_mm512_loadu_ps(x + 16 * i), _mm512_set1_ps(inverse)));
        low[i] = _mm512_cvtepi32_epi8(n);
        high[i] = _mm512_cvtepi32_epi8(_mm512_srai_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(128)), 8));
        sum[i] = _mm512_reduce_add_epi32(n);
    }
    __m256i bytes[2] = {_mm256_set_m128i(high[1], high[0]), _mm256_set_m128i(low[1], low[0])};
    for (int i = 0; i < 2 && in_pairs(format); i++)
        bytes[i] = even_first(bytes[i]);
    memcpy(to->high, &bytes[0], RUN);
    memcpy(to->low, &bytes[1], RUN);
    put_sums(format, is_number ? most / most_n : NAN, sum[0], sum[1], to);
}

#else

/* n of a run, in fours of eight numbers, and the sums of its halves. is_number 0: all are 0. */
struct rounded { __m256i n[4]; int sum[2]; };

UNPACK struct rounded rounded_run(const float *x, float inverse, int is_number)
{
    struct rounded to = {.sum = {0, 0}};
    for (int k = 0; k < 4; k++) {
        __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * k), _mm256_set1_ps(inverse)));
        to.n[k] = _mm256_and_si256(n, _mm256_set1_epi32(-is_number));
    }
    for (int i = 0; i < 2; i++) {
        ints8 sum = (ints8)_mm256_add_epi32(to.n[2 * i], to.n[2 * i + 1]);
        for (int k = 0; k < 8; k++)
            to.sum[i] += sum[k];
    }
    return to;
}

/* 16 numbers in 16 bits. */
UNPACK __m256i in_16_bits(__m256i first, __m256i second)
{
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
}

/* Two halves of numbers as the bytes of a run. */
UNPACK void put_bytes(enum sh_packing format, const __m256i half[2], int8_t *to)
{
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(half[0], half[1]), 0xd8);
    bytes = in_pairs(format) ? even_first(bytes) : bytes;
    memcpy(to, &bytes, RUN);
}

#ifdef HAS_DOTS

UNPACK void put_lane_run(enum sh_packing format, int bits, const float *x, struct lane_run *to)
{
    float most = largest(x), most_n = largest_n(format, bits), inverse = most >= 0x1p-100f ? most_n / most : 0;
    int is_number = most < INFINITY;
    struct rounded run = rounded_run(x, inverse, is_number);
    __m256i high[2], low[2];
    for (int i = 0; i < 2; i++) {
        __m256i half = in_16_bits(run.n[2 * i], run.n[2 * i + 1]);
        high[i] = _mm256_srai_epi16(_mm256_add_epi16(half, _mm256_set1_epi16(128)), 8);
        low[i] = _mm256_sub_epi16(half, _mm256_slli_epi16(high[i], 8));
    }
    put_bytes(format, high, to->high);
    put_bytes(format, low, to->low);
    put_sums(format, is_number ? most / most_n : NAN, run.sum[0], run.sum[1], to);
}

#else

/* What sums of products with these bytes begin with, of each span. */
UNPACK void put_start(enum sh_packing format, const int8_t *bytes, int32_t *to)
{
    __m256i sum = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const __m256i *)(const void *)bytes));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0x4e));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0xb1));
    if (spans_of_run(format) == 1)
        sum = _mm256_add_epi16(sum, _mm256_permute4x64_epi64(sum, 0x4e));
    sum = _mm256_mullo_epi16(sum, _mm256_set1_epi16((short)-lane_offset(format)));
    to[0] = _mm256_extract_epi32(sum, 0);
    to[1] = _mm256_extract_epi32(sum, 4);
}

/* The high bytes of eight numbers: the nearest whole number to n / BASE. */
UNPACK __m256i high_bytes(__m256i n)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(n), _mm256_set1_ps(1.0f / BASE)));
}

UNPACK void put_lane_run(enum sh_packing format, int bits, const float *x, struct lane_run *to)
{
    float most = largest(x), most_n = largest_n(format, bits);
    int is_number = most < INFINITY;
    struct rounded run = rounded_run(x, most >= 0x1p-100f ? most_n / most : 0, is_number);
    __m256i half[2], high[2], low[2];
    for (int i = 0; i < 2; i++)
        half[i] = in_16_bits(run.n[2 * i], run.n[2 * i + 1]);
    put_sums(format, is_number ? most / most_n : NAN, run.sum[0], run.sum[1], to);
    if (in_bytes(format)) {
        for (int i = 0; i < 2; i++) {
            high[i] = in_16_bits(high_bytes(run.n[2 * i]), high_bytes(run.n[2 * i + 1]));
            low[i] = _mm256_sub_epi16(half[i], _mm256_mullo_epi16(high[i], _mm256_set1_epi16(BASE)));
        }
        put_bytes(format, high, to->high);
        put_bytes(format, low, to->low);
        put_start(format, to->high, to->high_start);
        put_start(format, to->low, to->start);
        return;
    }
    for (int i = 0; i < 2; i++) {
        __m256i pairs = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(half[i], 0xd8), 0xd8);
        _mm256_storeu_si256((__m256i *)(void *)(to->pairs + 16 * i), pairs);
    }
}

#endif
#endif

/* Rows [first, first + rows): run i of row first + r is to[i * rows + r]. */
UNPACK void put_lanes(enum sh_packing format, int bits, const struct sh_mat *x, int first, int rows,
                      struct lane_run *to)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < x->cols / RUN; i++)
            put_lane_run(format, bits, (const float *)x->at + (size_t)(first + r) * x->stride + (size_t)i * RUN,
                         to + (size_t)i * (size_t)rows + r);
}

#endif
#endif
