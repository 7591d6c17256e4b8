/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of packed weights (kernels/packed.h) and rows of x for products with outputs in lanes, by AVX-512 VNNI: a
 * vector has four neighbouring codes of each of 16 outputs, as unsigned bytes, so that the sum of a row over a span is
 * 8 multiply-adds for 16 outputs, its scales are multiplied in one instruction, and the codes, once in registers, meet
 * several rows.
 *
 * Each 32 numbers of x, a run, become 16-bit integers as in packed_dots.h, x = scale * n, and these two signed bytes,
 * n = 256 * high + low. Sums of code * n over a span are exact integers below 2^31: 32 * 255 * MOST_N. Each is rounded
 * once to f32, and they are added in order of the spans, so that a row is the same bits alone and among any others,
 * few or many. */
#ifndef SH_KERNELS_CPU_PACKED_LANES_H
#define SH_KERNELS_CPU_PACKED_LANES_H

#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/packed_dots.h"

#ifdef __AVX512F__

#define VNNI __attribute__((target("avx512vnni")))
#define LANES_INLINE static inline __attribute__((always_inline, target("avx512vnni")))

enum {
    LANES = 16, GROUP = 4, GROUPS = RUN / GROUP,        /* outputs; codes of one in a lane; vectors of a run */
    PIECE = 16, WORDS = PIECE / GROUP,                  /* bytes of a block that are turned together         */
    MOST_PIECES = 12,
    TOGETHER = LANES / FEW_PLACES       /* outputs that are neighbours                                       */
};

typedef int16_t short_at __attribute__((aligned(1), may_alias));

/* A run of a row of x; the bytes in the order of codes_of. */
struct lane_run {
    int8_t high[RUN], low[RUN];
    float scale, sum[2];                /* sum of each span: scale * the sum of n                 */
    int32_t base[2];                    /* - lane_offset * the sum of n                           */
};

/* What the codes are stored with, as unsigned bytes. */
UNPACK int lane_offset(enum sh_packing format)
{
    return whole_is_signed(format) ? 128 : (int)whole_offset(format);
}

UNPACK int spans_of_run(enum sh_packing format)
{
    return RUN / shape_of(format).span;
}

/* Whether two formats want x alike. */
static inline int same_lanes(enum sh_packing a, enum sh_packing b)
{
    return same_whole(a, b) && lane_offset(a) == lane_offset(b);
}

/* ---- x ---- */

UNPACK void put_lane_run(enum sh_packing format, const float *x, struct lane_run *to)
{
    float most = largest(x), inverse = most >= 0x1p-100f ? MOST_N / most : 0;
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
    for (int i = 0; i < 2 && in_pairs(format); i++) {   /* the even ones first */
        const __m256i even = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
                                              0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
        bytes[i] = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bytes[i], even), 0xd8);
    }
    memcpy(to->high, &bytes[0], RUN);
    memcpy(to->low, &bytes[1], RUN);
    to->scale = is_number ? most / MOST_N : NAN;
    sum[0] += spans_of_run(format) == 1 ? sum[1] : 0;
    for (int i = 0; i < 2; i++) {
        to->base[i] = -lane_offset(format) * sum[i];
        to->sum[i] = to->scale * (float)sum[i];
    }
}

/* Rows [first, first + rows): run i of row first + r is to[i * rows + r]. */
UNPACK void put_lanes(enum sh_packing format, const struct sh_mat *x, int first, int rows, struct lane_run *to)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < x->cols / RUN; i++)
            put_lane_run(format, (const float *)x->at + (size_t)(first + r) * x->stride + (size_t)i * RUN,
                         to + (size_t)i * (size_t)rows + r);
}

/* ---- blocks of 16 outputs ---- */

/* Pieces of 16 bytes, from byte b of each output's blocks: word[4 * piece + i] = their words i. */
UNPACK void turned(const struct block_at *at, size_t b, int pieces, __m512i *word)
{
#pragma GCC unroll 16
    for (int p = 0; p < pieces; p++, b += PIECE, word += WORDS) {
        __m512i from[4], pair[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            __m128i part[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                part[j] = _mm_loadu_si128((const __m128i *)(const void *)(at[4 * j + k].b + b));
            from[k] = _mm512_inserti32x4(_mm512_castsi128_si512(part[0]), part[1], 1);
            from[k] = _mm512_inserti32x4(_mm512_inserti32x4(from[k], part[2], 2), part[3], 3);
        }
        pair[0] = _mm512_unpacklo_epi32(from[0], from[1]);
        pair[1] = _mm512_unpackhi_epi32(from[0], from[1]);
        pair[2] = _mm512_unpacklo_epi32(from[2], from[3]);
        pair[3] = _mm512_unpackhi_epi32(from[2], from[3]);
        word[0] = _mm512_unpacklo_epi64(pair[0], pair[2]);
        word[1] = _mm512_unpackhi_epi64(pair[0], pair[2]);
        word[2] = _mm512_unpacklo_epi64(pair[1], pair[3]);
        word[3] = _mm512_unpackhi_epi64(pair[1], pair[3]);
    }
}

/* The f16 number in half of each word. */
UNPACK __m512 half_of_words(__m512i word, int is_high)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(is_high ? _mm512_srli_epi32(word, 16) : word));
}

/* Byte j of each word. */
UNPACK __m512 byte_of_words(__m512i word, int j, int is_signed)
{
    word = _mm512_slli_epi32(word, (unsigned)(24 - 8 * j));
    return _mm512_cvtepi32_ps(is_signed ? _mm512_srai_epi32(word, 24) : _mm512_srli_epi32(word, 24));
}

UNPACK __m512i masked(__m512i word, int mask)
{
    return _mm512_and_si512(word, _mm512_set1_epi8((char)mask));
}

/* Bits of each byte from bit `from` on, moved to bit `to`; mask: which of them, there. */
UNPACK __m512i moved(__m512i word, int from, int to, int mask)
{
    word = to > from ? _mm512_slli_epi32(word, (unsigned)(to - from)) : _mm512_srli_epi32(word, (unsigned)(from - to));
    return masked(word, mask);
}

/* Scales of the spans of a block, and what is subtracted: as scales_of. */
struct lane_scales {
    __m512 scale[MOST_SPANS], less[MOST_SPANS];
};

/* sh_e8m0_half */
UNPACK __m512 e8m0_halves(__m512i e)
{
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(normal, is_small, _mm512_set1_epi32(0x00200000), e));
}

/* The first two bytes of blocks: on their own they take fewer shuffles than turned. */
UNPACK __m256i first_halves(const struct block_at *at, size_t b)
{
    __m128i half[2];
#define HALF(k) (*(const short_at *)(const void *)(at[k].b + b))
    for (int i = 0; i < 2; i++, at += 8)
        half[i] = _mm_setr_epi16(HALF(0), HALF(1), HALF(2), HALF(3), HALF(4), HALF(5), HALF(6), HALF(7));
#undef HALF
    return _mm256_set_m128i(half[1], half[0]);
}

/* Of blocks i, which begin at byte b. */
UNPACK void one_scale(enum sh_packing format, const struct block_at *at, size_t i, size_t b, struct lane_scales *to)
{
    if (shape_of(format).has_less) {
        __m512i head[WORDS];
        turned(at, b, 1, head);
        to->scale[0] = half_of_words(head[0], 0);
        to->less[0] = _mm512_sub_ps(_mm512_setzero_ps(), half_of_words(head[0], 1));
    } else if (is_apart(format)) {
        unsigned char e[LANES];
        for (int k = 0; k < LANES; k++)
            e[k] = at[k].apart[i];
        to->scale[0] = e8m0_halves(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)e)));
    } else if (format == SH_PACKED_MXFP4) {
        __m512i two = _mm512_cvtepu16_epi32(first_halves(at, b));
        to->scale[0] = e8m0_halves(_mm512_and_si512(two, _mm512_set1_epi32(255)));
    } else {
        to->scale[0] = _mm512_cvtph_ps(first_halves(at, b));
    }
}

/* pairs_of_6 */
UNPACK void lane_pairs_of_6(const __m512i *head, struct lane_scales *to)
{
    __m512 d = half_of_words(head[0], 0), least = half_of_words(head[0], 1);
    __m512i scale[2] = {masked(head[1], 63),
                        _mm512_or_si512(masked(head[3], 15), moved(head[1], 6, 4, 0x30))};
    __m512i less[2] = {masked(head[2], 63), _mm512_or_si512(moved(head[3], 4, 0, 15), moved(head[2], 6, 4, 0x30))};
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        to->scale[j] = _mm512_mul_ps(d, byte_of_words(scale[j / 4], j % 4, 0));
        to->less[j] = _mm512_mul_ps(least, byte_of_words(less[j / 4], j % 4, 0));
    }
}

/* sixteen_of_6; low: two words of four bits, high: one of two. */
UNPACK void lane_sixteen_of_6(__m512 d, const __m512i *low, __m512i high, struct lane_scales *to)
{
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        __m512i six = _mm512_or_si512(moved(low[k % 2], k / 2 * 4, 0, 15), moved(high, 2 * k, 4, 0x30));
        for (int j = 0; j < 4; j++)
            to->scale[4 * k + j] = _mm512_mul_ps(d, _mm512_sub_ps(byte_of_words(six, j, 0), _mm512_set1_ps(32)));
    }
}

/* times_8_of_6 */
UNPACK void lane_eight_of_6(const __m512i *head, struct lane_scales *to)
{
    __m512 d = half_of_words(head[0], 0);
    __m512i high = _mm512_srli_epi32(head[0], 16);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        __m512i four = _mm512_and_si512(_mm512_srli_epi32(head[1], (unsigned)(4 * j)), _mm512_set1_epi32(15));
        __m512i two = _mm512_and_si512(_mm512_srli_epi32(high, (unsigned)(2 * j)), _mm512_set1_epi32(3));
        __m512i six = _mm512_or_si512(four, _mm512_slli_epi32(two, 4));
        to->scale[j] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_sub_epi32(six, _mm512_set1_epi32(32))));
    }
}

UNPACK void lane_scales_of(enum sh_packing format, const struct block_at *at, size_t i, size_t b,
                           struct lane_scales *to)
{
    __m512i head[WORDS], tail[WORDS];
    __m512 d, least;
    if (!has_one_scale(format))
        turned(at, b, 1, head);
    switch (format) {
    case SH_PACKED_Q4_K: case SH_PACKED_Q5_K: lane_pairs_of_6(head, to); break;
    case SH_PACKED_IQ4_XS: lane_eight_of_6(head, to); break;
    case SH_PACKED_Q6_K:
        turned(at, b + 194, 1, tail);
        d = half_of_words(tail[3], 1);
        turned(at, b + 192, 1, tail);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++)
            to->scale[j] = _mm512_mul_ps(d, byte_of_words(tail[j / 4], j % 4, 1));
        break;
    case SH_PACKED_Q2_K:
        turned(at, b + 68, 1, tail);
        d = half_of_words(tail[3], 0);
        least = half_of_words(tail[3], 1);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) {
            to->scale[j] = _mm512_mul_ps(d, byte_of_words(masked(head[j / 4], 15), j % 4, 0));
            to->less[j] = _mm512_mul_ps(least, byte_of_words(moved(head[j / 4], 4, 0, 15), j % 4, 0));
        }
        break;
    case SH_PACKED_Q3_K:
        turned(at, b + 94, 1, tail);
        d = half_of_words(tail[3], 1);
        turned(at, b + 92, 1, tail);
        lane_sixteen_of_6(d, tail + 1, tail[3], to);
        break;
    default: one_scale(format, at, i, b, to);
    }
}

/* ---- codes of 16 outputs ---- */

struct pieces {                         /* of a block that codes are in                           */
    int at, n;
};

UNPACK struct pieces pieces_of(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_Q8_0: return (struct pieces){2, 2};
    case SH_PACKED_Q4_0: case SH_PACKED_IQ4_NL: return (struct pieces){2, 1};
    case SH_PACKED_Q4_1: return (struct pieces){4, 1};
    case SH_PACKED_Q5_0: return (struct pieces){6, 1};
    case SH_PACKED_Q5_1: return (struct pieces){8, 1};
    case SH_PACKED_MXFP4: return (struct pieces){1, 1};
    case SH_PACKED_Q4_K: return (struct pieces){16, 8};
    case SH_PACKED_Q5_K: return (struct pieces){16, 10};
    case SH_PACKED_Q6_K: return (struct pieces){0, 12};
    case SH_PACKED_Q2_K: return (struct pieces){16, 4};
    case SH_PACKED_Q3_K: return (struct pieces){0, 6};
    case SH_PACKED_IQ4_XS: return (struct pieces){8, 8};
    default: return (struct pieces){0, 1};      /* MXFP4_APART */
    }
}

/* The bits that Q5_0 and Q5_1 keep apart: bit k of a word belongs to code k of the run. */
UNPACK __m512i fifths_of_words(const struct block_at *at, enum sh_packing format, size_t b)
{
    __m512i head[WORDS];
    turned(at, b, 1, head);
    if (format == SH_PACKED_Q5_1)
        return head[1];
    return _mm512_or_si512(_mm512_srli_epi32(head[0], 16), _mm512_slli_epi32(head[1], 16));
}

/* With 16 added where bits 4 g to 4 g + 3 of the words are set. */
UNPACK __m512i with_fifths(__m512i code, __m512i bits, int g)
{
    const __m512i first = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    __m512i byte = _mm512_shuffle_epi8(bits, _mm512_add_epi8(first, _mm512_set1_epi8((char)(g / 2))));
    __mmask64 is_set = _mm512_test_epi8_mask(byte, _mm512_set1_epi32((int)(g % 2 ? 0x80402010 : 0x08040201)));
    return _mm512_mask_add_epi8(code, is_set, code, _mm512_set1_epi8(16));
}

/* Codes as numbers of a table, plus lane_offset. */
UNPACK __m512i through_table(enum sh_packing format, __m512i code)
{
    const __m128i iq4 = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
    const __m128i fp4 = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    switch (format) {
    case SH_PACKED_IQ4_NL: case SH_PACKED_IQ4_XS: return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(iq4), code);
    case SH_PACKED_MXFP4: case SH_PACKED_MXFP4_APART: return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(fp4), code);
    default: return code;
    }
}

/* Group g of a run, out of a block's words: unsigned bytes. */
UNPACK __m512i codes_of(enum sh_packing format, const __m512i *word, __m512i fifths, int run, int g)
{
    int half = run / 4, quarter = run % 4;
    switch (format) {
    case SH_PACKED_Q8_0: return _mm512_xor_si512(word[g], _mm512_set1_epi8(-128));
    case SH_PACKED_Q5_0: case SH_PACKED_Q5_1: return with_fifths(moved(word[g % 4], g / 4 * 4, 0, 15), fifths, g);
    case SH_PACKED_Q4_K: return moved(word[run / 2 * 8 + g], run % 2 * 4, 0, 15);
    case SH_PACKED_Q5_K:
        return _mm512_or_si512(moved(word[8 + run / 2 * 8 + g], run % 2 * 4, 0, 15), moved(word[g], run, 4, 16));
    case SH_PACKED_Q6_K:
        return _mm512_or_si512(moved(word[half * 16 + run % 2 * 8 + g], quarter / 2 * 4, 0, 15),
                               moved(word[32 + half * 8 + g], 2 * quarter, 4, 0x30));
    case SH_PACKED_Q2_K: return moved(word[half * 8 + g], 2 * quarter, 0, 3);
    case SH_PACKED_Q3_K:
        return _mm512_or_si512(moved(word[8 + half * 8 + g], 2 * quarter, 0, 3), moved(word[g], run, 2, 4));
    default: return through_table(format, moved(word[run * 4 + g % 4], g / 4 * 4, 0, 15));
    }
}

/* What a block's codes are made of, after the scales. */
struct lane_words {
    __m512i word[WORDS * MOST_PIECES], fifths;
};

UNPACK void words_of(enum sh_packing format, const struct block_at *at, size_t b, struct lane_words *to)
{
    struct pieces p = pieces_of(format);
    turned(at, b + (size_t)p.at, p.n, to->word);
    to->fifths = _mm512_setzero_si512();
    if (format == SH_PACKED_Q5_0 || format == SH_PACKED_Q5_1)
        to->fifths = fifths_of_words(at, format, b);
}

/* ---- products ---- */

/* Group g of a run of x. */
UNPACK int32_t four_of(const int8_t *x, int g)
{
    int32_t four;
    memcpy(&four, x + GROUP * g, GROUP);
    return four;
}

/* sum and what span j of a run of x gives: 256 * high + low is the sum of code * n. less: NULL where there is none. */
UNPACK __m512 add_span(__m512 sum, __m512i high, __m512i low, const struct lane_run *x, int j, const __m512 *scale,
                       const __m512 *less)
{
    __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
    sum = _mm512_fmadd_ps(_mm512_mul_ps(dot, _mm512_set1_ps(x->scale)), *scale, sum);
    return less ? _mm512_fnmadd_ps(*less, _mm512_set1_ps(x->sum[j]), sum) : sum;
}

/* ---- memory ---- */

/* What is asked for while blocks are read: those that are read next, TOGETHER rows at each of FEW_PLACES places, in
 * the order of their addresses, which the memory serves faster than the order in which they are needed. */
struct ahead {
    size_t next, row_bytes;             /* from the blocks that are read; of a row                */
    size_t due, col;                    /* bytes to ask for; where in row `row`                   */
    int row;
};

UNPACK void ask_ahead(struct ahead *a, const struct block_at *at, size_t bytes)
{
    enum { LINE = 64 };
    for (a->due += TOGETHER * bytes; a->due >= LINE; a->due -= LINE) {
        for (int k = 0; k < LANES; k += TOGETHER)
            __builtin_prefetch(at[k + a->row].b + a->next + a->col, 0, 2);
        a->col += LINE;
        if (a->col >= a->row_bytes && a->row + 1 < TOGETHER) {
            a->row++;
            a->col = 0;
        }
    }
}

/* Bytes from blocks to those of the output `outputs` later. */
static inline size_t outputs_on(const struct block_at *at, int outputs)
{
    return at[1].b > at[0].b ? (size_t)outputs * (size_t)(at[1].b - at[0].b) : 0;
}

#endif
#endif
