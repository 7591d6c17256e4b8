/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of lattice points (unpack_points.h) of 16 rows for products with outputs in lanes (packed_lanes.h). Words of
 * the blocks are turned into lanes; indices, signs and small scales are taken out of these, for 16 outputs at once, and
 * points loaded one by one: they do not fit into registers, and gathering instructions take longer. */
#ifndef SH_KERNELS_CPU_POINTS_LANES_H
#define SH_KERNELS_CPU_POINTS_LANES_H

#include "kernels/cpu/lane_run.h"
#include "kernels/cpu/row_words.h"
#include "kernels/cpu/unpack_points.h"

#ifdef __AVX2__

/* ---- blocks ---- */

/* What a block's codes are made of. Of each run: indices, as bytes of words or as pairs of 16-bit numbers, and signs.
 * Small scales, which are 2 s + 1: four bits s of each span. */
struct lane_points {
    lane_ints index[POINTS_BLOCK / RUN][4] __attribute__((aligned(64)));
    lane_ints sign[POINTS_BLOCK / RUN], small[2];
    lane_floats d;
};

UNPACK int is_fours(enum sh_packing format)
{
    return format == SH_PACKED_IQ3_XXS || format == SH_PACKED_IQ3_S;
}

/* Whether indices are bytes. */
UNPACK int has_byte_indices(enum sh_packing format)
{
    return format == SH_PACKED_IQ2_XXS || format == SH_PACKED_IQ3_XXS;
}

/* Bits [from, from + n) of words as bits `to` and up. */
UNPACK lane_ints bits_at(lane_ints word, int from, int n, int to)
{
    word = to > from ? ints_left(word, to - from) : to < from ? ints_right(word, from - to) : word;
    return ints_and(word, ints_set((int32_t)(((1u << n) - 1) << to)));
}

/* even_signs */
UNPACK lane_ints even_sign_lanes(lane_ints sevens)
{
    lane_ints parity = ints_xor(sevens, ints_right(sevens, 4));
    parity = ints_xor(parity, ints_right(parity, 2));
    parity = ints_xor(parity, ints_right(parity, 1));
    return ints_or(sevens, ints_left(ints_and(parity, ints_set(0x01010101)), 7));
}

/* Four times seven bits of words of signs and a scale. */
UNPACK lane_ints signs_of_word(lane_ints w)
{
    lane_ints low = ints_or(bits_at(w, 0, 7, 0), bits_at(w, 7, 7, 8));
    return even_sign_lanes(ints_or(low, ints_or(bits_at(w, 14, 7, 16), bits_at(w, 21, 7, 24))));
}

/* Four bytes of words as indices, and `n` more bits of each from bits h, h + step, ... of others. */
UNPACK void put_indices(lane_ints bytes, lane_ints more, int h, int step, int n, lane_ints *to)
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        lane_ints low = ints_or(bits_at(bytes, 16 * i, 8, 0), bits_at(bytes, 16 * i + 8, 8, 16));
        int at = h + 2 * i * step;
        to[i] = ints_or(low, ints_or(bits_at(more, at, n, 8), bits_at(more, at + step, n, 24)));
    }
}

UNPACK void points_of_2_xxs(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[16];
    turned(at, b + 2, 4, word);
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        to->index[run][0] = word[2 * run];
        to->sign[run] = signs_of_word(word[2 * run + 1]);
        to->small[0] = ints_or(to->small[0], bits_at(word[2 * run + 1], 28, 4, 4 * run));
    }
}

UNPACK void points_of_2_xs(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[16], s[WORDS];
    turned(at, b + 2, 4, word);
    turned(at, b + 58, 1, s);
    to->small[0] = s[2];
    to->small[1] = s[3];
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        lane_ints first = word[2 * run], second = word[2 * run + 1];
        to->index[run][0] = ints_and(first, ints_set(0x01ff01ff));
        to->index[run][1] = ints_and(second, ints_set(0x01ff01ff));
        first = ints_or(bits_at(first, 9, 7, 0), bits_at(first, 25, 7, 8));
        second = ints_or(bits_at(second, 9, 7, 16), bits_at(second, 25, 7, 24));
        to->sign[run] = even_sign_lanes(ints_or(first, second));
    }
}

UNPACK void points_of_2_s(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[8], s[WORDS];
    turned(at, b + 2, 2, word);
    turned(at, b + 34, 2, to->sign);
    turned(at, b + 66, 1, s);
    to->small[0] = s[2];
    to->small[1] = s[3];
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++)
        put_indices(word[run], s[run / 4], 8 * (run % 4), 2, 2, to->index[run]);
}

UNPACK void points_of_3_xxs(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[16], last[8];
    turned(at, b + 2, 4, word);
    turned(at, b + 66, 2, last);
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        to->index[run][0] = word[2 * run];
        to->index[run][1] = word[2 * run + 1];
        to->sign[run] = signs_of_word(last[run]);
        to->small[0] = ints_or(to->small[0], bits_at(last[run], 28, 4, 4 * run));
    }
}

UNPACK void points_of_3_s(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[16], high[WORDS], s[WORDS];
    turned(at, b + 2, 4, word);
    turned(at, b + 66, 1, high);
    turned(at, b + 74, 2, to->sign);
    turned(at, b + 94, 1, s);
    to->small[0] = s[3];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        put_indices(word[i], high[i / 8], 4 * (i % 8), 1, 1, to->index[i / 2] + 2 * (i % 2));
}

/* Signs: those of the shifts, for each eight a byte with eight of them. */
UNPACK void points_of_1_s(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[8], high[WORDS];
    turned(at, b + 2, 2, word);
    turned(at, b + 34, 1, high);
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        lane_ints h = high[run / 2];
        int first = 16 * (run % 2);
        put_indices(word[run], h, first, 3, 3, to->index[run]);
        to->sign[run] = ints_right_signed(ints_left(h, 16 - first), 31);
        to->small[0] = ints_or(to->small[0], bits_at(h, first + 12, 3, 4 * run));
    }
}

UNPACK void points_of_1_m(const struct block_at *at, size_t b, struct lane_points *to)
{
    lane_ints word[8], high[WORDS], s[WORDS];
    turned(at, b, 2, word);
    turned(at, b + 32, 1, high);
    turned(at, b + 40, 1, s);
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        lane_ints h = high[run / 2], sign = ints_set(0);
        int first = 16 * (run % 2);
        put_indices(word[run], h, first, 4, 3, to->index[run]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sign = ints_or(sign, bits_at(h, first + 4 * i + 3, 1, 8 * i));
        to->sign[run] = ints_sub(ints_left(sign, 8), sign);     /* 255 times; the last byte fits, too */
    }
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
        lane_ints one = bits_at(s[2 + j / 8], 16 * (j / 4 % 2) + 3 * (j % 4), 3, 4 * (j % 8));
        to->small[j / 8] = ints_or(to->small[j / 8], one);
    }
    lane_ints d = ints_or(bits_at(s[2], 12, 4, 0), bits_at(s[2], 28, 4, 4));
    to->d = floats_of_low(ints_or(d, ints_or(bits_at(s[3], 12, 4, 8), bits_at(s[3], 28, 4, 12))));
}

UNPACK void put_lane_points(enum sh_packing format, const struct block_at *at, size_t b, struct lane_points *to)
{
    to->small[0] = to->small[1] = ints_set(0);
    switch (format) {
    case SH_PACKED_IQ1_S: points_of_1_s(at, b, to); break;
    case SH_PACKED_IQ1_M: points_of_1_m(at, b, to); break;
    case SH_PACKED_IQ2_XXS: points_of_2_xxs(at, b, to); break;
    case SH_PACKED_IQ2_XS: points_of_2_xs(at, b, to); break;
    case SH_PACKED_IQ2_S: points_of_2_s(at, b, to); break;
    case SH_PACKED_IQ3_XXS: points_of_3_xxs(at, b, to); break;
    default: points_of_3_s(at, b, to);
    }
    __asm__("" : "+m"(to->index));      /* read from memory: out of registers it takes two operations for each */
    if (format != SH_PACKED_IQ1_M)
        to->d = floats_of_halves(halves_of_rows(at, b));
    to->d = floats_mul(to->d, floats_set(points_unit(format)));
}

/* The scale of span j: d (2 s + 1). */
UNPACK lane_floats scale_of_points(const struct lane_points *p, int j)
{
    lane_floats s = floats_of(ints_and(ints_right(p->small[j / 8], 4 * (j % 8)), ints_set(15)));
    return floats_add_mul(p->d, floats_mul(p->d, floats_set(2)), s);
}

/* ---- codes ---- */

UNPACK unsigned lane_index(enum sh_packing format, const lane_ints *run, int point, int lane)
{
    const unsigned char *byte = (const unsigned char *)(run + point / 4) + 4 * lane + point % 4;
    const uint16_t *pair = (const uint16_t *)(const void *)(run + point / 2) + 2 * lane + point % 2;
    return has_byte_indices(format) ? *byte : *pair;
}

/* 16 points of four numbers. */
UNPACK lane_ints four_lanes(enum sh_packing format, const lane_ints *run, int point)
{
    const uint32_t *table = format == SH_PACKED_IQ3_S ? sh_iq3_s : sh_iq3_xxs;
#define AT(k) (int)table[lane_index(format, run, point, k)]
    __m256i low = _mm256_setr_epi32(AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
    __m256i high = _mm256_setr_epi32(AT(8), AT(9), AT(10), AT(11), AT(12), AT(13), AT(14), AT(15));
#undef AT
    return ints_of_parts(low, high);
}

/* 16 points of eight: to[0] has their first four numbers, to[1] the others. */
UNPACK void eight_lanes(enum sh_packing format, const lane_ints *run, int point, lane_ints *to)
{
    const uint64_t *table = format == SH_PACKED_IQ2_XXS  ? sh_iq2_xxs
                            : format == SH_PACKED_IQ2_XS ? sh_iq2_xs
                            : format == SH_PACKED_IQ2_S  ? sh_iq2_s
                                                         : sh_iq1;
    __m256i part[4];                    /* rows 0, 1, 4, 5, then 2, 3, 6, 7, then both 8 later    */
#define AT(k) (long long)table[lane_index(format, run, point, k)]
#pragma GCC unroll 4
    for (int i = 0, k = 0; i < 4; i++, k = i / 2 * 8 + i % 2 * 2)
        part[i] = _mm256_setr_epi64x(AT(k), AT(k + 1), AT(k + 4), AT(k + 5));
#undef AT
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256 half[2];
        for (int k = 0; k < 2; k++) {
            __m256 a = _mm256_castsi256_ps(part[2 * k]), b = _mm256_castsi256_ps(part[2 * k + 1]);
            half[k] = i ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);
        }
        to[i] = ints_of_parts(_mm256_castps_si256(half[0]), _mm256_castps_si256(half[1]));
    }
}

/* Bits 4 g to 4 g + 3 of words, each as a byte of it that has one bit, `*bit`, of interest. */
UNPACK lane_ints four_bits(lane_ints word, int g, int32_t *bit)
{
    __m128i byte = _mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)(g / 2)));
    *bit = (int32_t)(g % 2 ? 0x80402010 : 0x08040201);
    return ints_shuffle(word, ints_repeat(byte));
}

/* The codes of a run plus 128. */
UNPACK void put_point_codes(enum sh_packing format, const struct lane_points *p, int run, lane_ints code[GROUPS])
{
    int is_ternary = format == SH_PACKED_IQ1_S || format == SH_PACKED_IQ1_M;
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++)
        if (is_fours(format))
            code[g] = four_lanes(format, p->index[run], g);
        else if (g % 2 == 0)
            eight_lanes(format, p->index[run], g / 2, code + g);
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++) {
        int32_t bit;
        lane_ints signs = four_bits(p->sign[run], g, &bit);
        if (is_ternary)
            code[g] = bytes_add_where(code[g], -2, signs, bit);
        else
            code[g] = bytes_less_where(code[g], signs, bit);
    }
}

#endif
#endif
