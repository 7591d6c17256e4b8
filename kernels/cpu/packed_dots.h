/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of packed weights (unpack.h) and rows of x as whole numbers.
 *
 * Each 32 numbers of x, a run, become 16-bit integers: x = scale * n with scale = max |x| / 32639. The codes of weights
 * are integers already, so that sums of code * n over a run are exact, and take a third of the instructions that f32
 * products take. Rounding to n changes x by at most scale / 2, which is max |x| / 65278 of the run. Sums over runs are
 * f32, in lanes: each has every run's sum over the same numbers, at most four, so that it is at most 4 * 128 * 32639 <
 * 2^24, which f32 has exactly. A run of x with NaN or an infinity gives NaN; one of numbers below 2^-100 alone counts
 * as 0. */
#ifndef SH_KERNELS_CPU_PACKED_DOTS_H
#define SH_KERNELS_CPU_PACKED_DOTS_H

#include "kernels/cpu/gemm_few_rows.h"
#include "kernels/cpu/unpack.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

enum {
    SUMS = CPU_FLOATS == 16 ? 16 : 8,   /* lanes                                                  */
    MOST_N = 32639                      /* 127 * 256 + 127: two signed bytes                      */
};

typedef float floats4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float floats8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef int32_t ints8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int16_t halves8 __attribute__((vector_size(16), aligned(2), may_alias));
typedef float floats_of_run __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef int32_t ints_of_run __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));

/* A row of x: of each run its 32 numbers n in the order of dot_run; and of each span of the weights, up to 32 numbers,
 * the scale and what a weight that is 1 in all of the span gives, scale * sum of n. */
struct whole_x {
    int16_t (*n)[RUN];
    float *scale, *sum;
};

/* Floats that it takes: with spans of 16. */
static inline size_t whole_room(int cols)
{
    return (size_t)(cols / RUN) * (RUN / 2 + 4) + 16;
}

static inline struct whole_x whole_at(float *room, int cols)
{
    size_t runs = (size_t)(cols / RUN);
    struct whole_x x = {.n = (void *)room};
    x.scale = (void *)(x.n + runs);
    x.sum = x.scale + 2 * runs;
    return x;
}

/* Whether two formats want x alike. */
static inline int same_whole(enum sh_packing a, enum sh_packing b)
{
    return in_pairs(a) == in_pairs(b) && sh_packing_shape(a).span == sh_packing_shape(b).span;
}

/* max |x| of a run; infinite or NaN if one of them is. */
UNPACK float largest(const float *x)
{
    ints8 most = {0};
    uint32_t all = 0;
    for (int i = 0; i < RUN; i += 8) {
        ints8 bits = *(const ints8 *)(const void *)(x + i) & 0x7fffffff, more = bits > most;
        most = (bits & more) | (most & ~more);
    }
    for (int k = 0; k < 8; k++)
        all = (uint32_t)most[k] > all ? (uint32_t)most[k] : all;
    return sh_from_bits(all);
}

/* x in order. */
UNPACK void put_run(enum sh_packing format, const float *x, const struct whole_x *to, int run)
{
    const float round = 0x1.8p23f;      /* adding it leaves the nearest integer in the low bits   */
    float most = largest(x), scale = most / MOST_N, inverse = 0;
    int is_number = most < INFINITY, spans = RUN / sh_packing_shape(format).span;
    int16_t in_order[RUN];
    ints8 sum[2] = {{0}};
    if (is_number && most >= 0x1p-100f)
        inverse = MOST_N / most;
    for (int i = 0; i < RUN; i += 8) {
        ints8 n = (ints8)(*(const floats8 *)(x + i) * inverse + round) - (int32_t)sh_bits(round);
        n &= -is_number;
        *(halves8 *)(in_order + i) = __builtin_convertvector(n, halves8);
        sum[i * spans / RUN] += n;
    }
    for (int i = 0; i < RUN; i++) {
        int code = CPU_FLOATS == 16 ? i : i % 16 * 2 + i / 16;  /* the even ones first           */
        to->n[run][i] = in_order[in_pairs(format) ? code % 16 * 2 + code / 16 : code];
    }
    for (int i = 0; i < spans; i++) {
        int all = 0;
        for (int k = 0; k < 8; k++)
            all += sum[i][k];
        to->scale[run * spans + i] = is_number ? scale : NAN;
        to->sum[run * spans + i] = (is_number ? scale : NAN) * (float)all;
    }
}

/* x: `cols` numbers. */
UNPACK void put_whole(enum sh_packing format, const float *x, int cols, float *room)
{
    struct whole_x to = whole_at(room, cols);
    for (int run = 0; run < cols / RUN; run++)
        put_run(format, x + (size_t)run * RUN, &to, run);
}

/* The 32 codes of a run. Those of MXFP4 go from 0 on here. */
UNPACK bytes32 whole_codes(enum sh_packing format, const unsigned char *b, int run)
{
    static const int8_t fp4[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    switch (format) {
    case SH_PACKED_Q8_0: return *(const bytes32 *)(const void *)(b + 2);
    case SH_PACKED_Q4_0: return nibbles(b + 2);
    case SH_PACKED_Q4_1: case SH_PACKED_INT4_32: return nibbles(b + 4);
    case SH_PACKED_INT4_128: return bits_of(b + 4 + run / 2 * 32, run % 2 * 4, 15);
    case SH_PACKED_INT8_128: return *(const bytes32 *)(const void *)(b + 4 + run * RUN);
    case SH_PACKED_Q4_K: return bits_of(b + 16 + run / 2 * 32, run % 2 * 4, 15);
    case SH_PACKED_MXFP4: return looked_up(fp4, b + 1);
    case SH_PACKED_MXFP4_APART: return looked_up(fp4, b);
    case SH_PACKED_FP4_128: return looked_up_bytes(fp4, bits_of(b + 12 + run / 2 * 32, run % 2 * 4, 15));
    default: return run_codes(format, b, run);
    }
}

UNPACK float whole_offset(enum sh_packing format)
{
    int is_fp4 = format == SH_PACKED_MXFP4 || format == SH_PACKED_MXFP4_APART || format == SH_PACKED_FP4_128;
    return is_fp4 ? 12 : offset_of(format);
}

UNPACK int whole_is_signed(enum sh_packing format)
{
    return format == SH_PACKED_Q8_0 || format == SH_PACKED_IQ4_NL || format == SH_PACKED_IQ4_XS ||
           format == SH_PACKED_INT8_128 || sh_packed_is_points(format);
}

/* Sums of code * n; those of each half of the run are in half of the lanes. */
UNPACK ints_of_run dot_run(bytes32 code, const int16_t *n, int is_signed)
{
#if defined __AVX512F__
    __m512i c = is_signed ? _mm512_cvtepi8_epi16((__m256i)code) : _mm512_cvtepu8_epi16((__m256i)code);
    return (ints_of_run)_mm512_madd_epi16(c, _mm512_loadu_si512(n));
#elif defined __AVX2__
    __m256i c = (__m256i)code, even = _mm256_and_si256(c, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(c, 8);
    if (is_signed) {
        even = _mm256_srai_epi16(_mm256_slli_epi16(c, 8), 8);
        odd = _mm256_srai_epi16(c, 8);
    }
    even = _mm256_madd_epi16(even, _mm256_loadu_si256((const __m256i *)(const void *)n));
    odd = _mm256_madd_epi16(odd, _mm256_loadu_si256((const __m256i *)(const void *)(n + 16)));
    return (ints_of_run)_mm256_add_epi32(even, odd);
#elif defined __SSE2__
    ints_of_run sum;
    for (int half = 0; half < 2; half++) {
        __m128i c, even, odd;
        memcpy(&c, (const char *)&code + 16 * half, sizeof c);
        even = is_signed ? _mm_srai_epi16(_mm_slli_epi16(c, 8), 8) : _mm_and_si128(c, _mm_set1_epi16(255));
        odd = is_signed ? _mm_srai_epi16(c, 8) : _mm_srli_epi16(c, 8);
        even = _mm_madd_epi16(even, _mm_loadu_si128((const __m128i *)(const void *)(n + 8 * half)));
        odd = _mm_madd_epi16(odd, _mm_loadu_si128((const __m128i *)(const void *)(n + 16 + 8 * half)));
        even = _mm_add_epi32(even, odd);
        memcpy((char *)&sum + 16 * half, &even, sizeof even);
    }
    return sum;
#else
    ints_of_run sum = {0};
    for (int i = 0; i < RUN; i++)
        sum[i / 4] += (is_signed ? code[i] : (unsigned char)code[i]) * n[i % 2 * 16 + i / 2];
    return sum;
#endif
}

/* The scale of a run in the lanes. */
UNPACK floats_of_run of_run(enum sh_packing format, const float *scale, int run)
{
    if (sh_packing_shape(format).span == RUN)
        return scale[run] - (floats_of_run){0};
#if defined __AVX512F__
    __m512 first = _mm512_set1_ps(scale[2 * run]);
    return (floats_of_run)_mm512_mask_blend_ps(0xff00, first, _mm512_set1_ps(scale[2 * run + 1]));
#elif defined __AVX2__
    double two;
    memcpy(&two, scale + 2 * run, sizeof two);
    return (floats_of_run)_mm256_permutevar_ps((__m256)_mm256_set1_pd(two), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
#else
    float a = scale[2 * run], b = scale[2 * run + 1];
    return (floats_of_run){a, a, a, a, b, b, b, b};
#endif
}

/* The upper half of the lanes added to the lower one, where there are more than 8. */
UNPACK floats8 in_8(floats_of_run sum)
{
#ifdef __AVX512F__
    __m256 low = _mm512_castps512_ps256((__m512)sum), high = _mm512_extractf32x8_ps((__m512)sum, 1);
    return (floats8)_mm256_add_ps(low, high);
#else
    return sum;
#endif
}

/* The sum of the lanes of each of four: neighbours, then pairs of them, then the two halves. */
UNPACK floats4 totals(const floats8 *sum)
{
#ifdef __AVX2__
    __m256 first = _mm256_hadd_ps((__m256)sum[0], (__m256)sum[1]);
    __m256 all = _mm256_hadd_ps(first, _mm256_hadd_ps((__m256)sum[2], (__m256)sum[3]));
    return (floats4)_mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
#else
    floats4 to;
    for (int k = 0; k < 4; k++)
        to[k] = (sum[k][0] + sum[k][1] + (sum[k][2] + sum[k][3])) + (sum[k][4] + sum[k][5] + (sum[k][6] + sum[k][7]));
    return to;
#endif
}

/* The f16 numbers `skip` bytes into blocks. */
UNPACK floats4 halves_of(const struct block_at *at, size_t b, int skip)
{
    uint64_t all = 0;
    for (int k = 0; k < FEW_PLACES; k++) {
        const unsigned char *from = at[k].b + b + skip;
        all |= (uint64_t)(from[0] | from[1] << 8) << 16 * k;
    }
#ifdef __F16C__
    return (floats4)_mm_cvtph_ps(_mm_cvtsi64_si128((long long)all));
#else
    floats4 to = {0};
    for (int k = 0; k < FEW_PLACES; k++)
        to[k] = sh_f16_to_f32((uint16_t)(all >> 16 * k));
    return to;
#endif
}

/* What is subtracted in blocks that have one scale, of formats that have it. */
UNPACK floats4 less_of_blocks(enum sh_packing format, const struct block_at *at, size_t b)
{
    floats4 less = {0};
    if (format != SH_PACKED_INT4_32)
        return -halves_of(at, b, 2);
    for (int k = 0; k < FEW_PLACES; k++)
        less[k] = int4_less(at[k].b + b);
    return less;
}

/* Scales of blocks that have one. */
UNPACK floats4 scales_of_blocks(enum sh_packing format, const struct block_at *at, size_t i, size_t b)
{
    ints4 e = {0};
    if (format == SH_PACKED_INT4_32) {
        floats4 scale = {0};
        for (int k = 0; k < FEW_PLACES; k++)
            scale[k] = int4_scale(at[k].b + b);
        return scale;
    }
    if (format != SH_PACKED_MXFP4 && format != SH_PACKED_MXFP4_APART)
        return halves_of(at, b, 0);
    for (int k = 0; k < FEW_PLACES; k++)
        e[k] = is_apart(format) ? at[k].apart[i] : at[k].b[b];
    ints4 is_small = e < 2;             /* sh_e8m0_half */
    return (floats4)((is_small & 0x00200000 << e) | (~is_small & (e - 1) << 23));
}

#endif
