/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights (kernels/packed.h) for products with outputs in lanes: lane k has four neighbouring
 * codes of output k of 16, as unsigned bytes, so that scales are multiplied for 16 outputs at once, and codes, once in
 * registers, meet several rows.
 *
 * Blocks of 16 outputs lie in a group (packed_group.h), a copy in which each field of a block is followed by that of
 * the next output: then words of codes are lanes as they are loaded. With AVX-512 VNNI they may also come from 16 rows
 * of blocks, whose words are turned into lanes. Rows of x are in lane_run.h. */
#ifndef SH_KERNELS_CPU_PACKED_LANES_H
#define SH_KERNELS_CPU_PACKED_LANES_H

#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/group_codes.h"
#include "kernels/cpu/lane_run.h"
#include "kernels/cpu/packed_group.h"
#include "kernels/cpu/points_lanes.h"

#ifdef __AVX2__

enum {
    MOST_PIECES = 12,
    TOGETHER = LANES / FEW_PLACES,      /* outputs that are neighbours, of rows of blocks                    */
    GROUP_AHEAD = 8192                  /* bytes of groups that are read from end to end                     */
};

/* Whether there are kernels that read rows of blocks: with AVX-512 of all formats. */
UNPACK int has_row_lanes(enum sh_packing format)
{
#ifdef __AVX512F__
    return sh_packed_is_code(format);
#else
    return sh_packed_is_points(format);
#endif
}

/* ---- blocks of 16 outputs ---- */

/* Where they are: in a group, or in rows. */
struct lanes_at {
    int is_group;                       /* a constant, so that a kernel has one way alone         */
    const unsigned char *group;         /* the block of all                                       */
    const struct block_at *row;         /* [LANES]: in rows                                       */
    size_t b, i;                        /* the byte of a row at which its block begins; its number */
};

#ifdef __AVX512F__
UNPACK lane_ints first_bytes_of_rows(enum sh_packing format, const struct lanes_at *at)
{
    unsigned char e[LANES];
    for (int k = 0; k < LANES; k++)
        e[k] = is_apart(format) ? at->row[k].apart[at->i] : at->row[k].b[at->b];
    return ints_of_bytes(e);
}
#endif

/* Pieces from byte `skip` of the blocks on. */
UNPACK void pieces_at(enum sh_packing format, const struct lanes_at *at, int skip, int pieces, lane_ints *word)
{
#ifdef __AVX512F__
    if (!at->is_group) {
        turned(at->row, at->b + (size_t)skip, pieces, word);
        return;
    }
#endif
#pragma GCC unroll 16
    for (int p = 0; p < pieces; p++)
#pragma GCC unroll 4
        for (int j = p * WORDS; j < (p + 1) * WORDS; j++)
            word[j] = ints_load(at->group + LANES * group_place(format, skip + 4 * j));
}

/* One word; in rows there are 12 bytes before it or after it. */
UNPACK lane_ints lane_word_at(enum sh_packing format, const struct lanes_at *at, int skip)
{
#ifdef __AVX512F__
    if (!at->is_group) {
        lane_ints word[WORDS];
        turned(at->row, at->b + (size_t)(skip < 12 ? skip : skip - 12), 1, word);
        return word[skip < 12 ? 0 : 3];
    }
#endif
    return ints_load(at->group + LANES * group_place(format, skip));
}

/* f16 numbers. */
UNPACK lane_floats halves_at(enum sh_packing format, const struct lanes_at *at, int skip)
{
#ifdef __AVX512F__
    if (!at->is_group)
        return floats_of_halves(halves_of_rows(at->row, at->b + (size_t)skip));
#endif
    return floats_load_halves(at->group + LANES * group_place(format, skip));
}

/* The f16 number in half of each word. */
UNPACK lane_floats half_of_words(lane_ints word, int is_high)
{
    return floats_of_low(is_high ? ints_right(word, 16) : word);
}

/* Byte j of each word. */
UNPACK lane_floats byte_of_words(lane_ints word, int j, int is_signed)
{
    word = ints_left(word, 24 - 8 * j);
    return floats_of(is_signed ? ints_right_signed(word, 24) : ints_right(word, 24));
}

/* What the scales of a block's spans are made of: `d` is the scale of all, or all there is; `least` of what is
 * subtracted. */
struct lane_scales {
    lane_floats d, least;
    lane_ints word[WORDS];
    struct lane_points points;          /* of these instead, with what codes are made of          */
};

/* sh_e8m0_half */
UNPACK lane_floats e8m0_halves(lane_ints e)
{
    return floats_as(ints_less_left(e, 2, 0x00200000, ints_left(ints_sub(e, ints_set(1)), 23)));
}

/* int4_scale, int4_less */
UNPACK void put_int4(lane_ints head, struct lane_scales *to)
{
    to->d = floats_as(ints_and(head, ints_set(-256)));
    to->least = floats_mul(to->d, floats_of(ints_and(head, ints_set(255))));
}

UNPACK void one_scale(enum sh_packing format, const struct lanes_at *at, struct lane_scales *to)
{
    if (format == SH_PACKED_INT4_32) {
        put_int4(lane_word_at(format, at, 0), to);
    } else if (sh_packing_shape(format).has_less) {
        lane_ints head = lane_word_at(format, at, 0);
        to->d = half_of_words(head, 0);
        to->least = floats_sub(floats_set(0), half_of_words(head, 1));
    } else if (format != SH_PACKED_MXFP4 && !is_apart(format)) {
        to->d = halves_at(format, at, 0);
#ifdef __AVX512F__
    } else if (!at->is_group) {
        to->d = e8m0_halves(first_bytes_of_rows(format, at));
#endif
    } else {
        to->d = e8m0_halves(ints_of_bytes(at->group));
    }
}

/* pairs_of_6: bytes of the scales, then of what is subtracted. */
UNPACK void put_pairs_of_6(struct lane_scales *to)
{
    lane_ints a = to->word[1], b = to->word[2], c = to->word[3];
    to->d = half_of_words(to->word[0], 0);
    to->least = half_of_words(to->word[0], 1);
    to->word[0] = masked(a, 63);
    to->word[1] = ints_or(masked(c, 15), moved(a, 6, 4, 0x30));
    to->word[2] = masked(b, 63);
    to->word[3] = ints_or(moved(c, 4, 0, 15), moved(b, 6, 4, 0x30));
}

/* sixteen_of_6, from two words of four bits and one of two; with AVX2 alone without their offset. */
UNPACK void put_sixteen_of_6(struct lane_scales *to)
{
    lane_ints low[2] = {to->word[1], to->word[2]}, high = to->word[3];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        to->word[k] = ints_or(moved(low[k % 2], k / 2 * 4, 0, 15), moved(high, 2 * k, 4, 0x30));
#ifndef HAS_DOTS
        to->word[k] = bytes_sub(to->word[k], bytes_set(32));
#endif
    }
}

UNPACK void lane_scales_of(enum sh_packing format, const struct lanes_at *at, struct lane_scales *to)
{
    if (sh_packed_is_points(format)) {
        put_lane_points(format, at->row, at->b, &to->points);
        return;
    }
    switch (format) {
    case SH_PACKED_Q4_K: case SH_PACKED_Q5_K:
        pieces_at(format, at, 0, 1, to->word);
        put_pairs_of_6(to);
        break;
    case SH_PACKED_IQ4_XS:              /* two words, of which the first has a number of each kind */
        pieces_at(format, at, 0, 1, to->word);
        to->d = half_of_words(to->word[0], 0);
        break;
    case SH_PACKED_Q6_K:
        to->d = halves_at(format, at, 208);
        pieces_at(format, at, 192, 1, to->word);
        break;
    case SH_PACKED_Q2_K:
        to->d = half_of_words(lane_word_at(format, at, 80), 0);
        to->least = half_of_words(lane_word_at(format, at, 80), 1);
        pieces_at(format, at, 0, 1, to->word);
        break;
    case SH_PACKED_INT4_128:
        put_int4(lane_word_at(format, at, 0), to);
        break;
    case SH_PACKED_TQ1_0: case SH_PACKED_TQ2_0: case SH_PACKED_Q1_0:
        to->d = halves_at(format, at, scale_of_all(format));
        break;
    case SH_PACKED_INT8_128:
        to->d = floats_as(lane_word_at(format, at, 0));
        break;
    case SH_PACKED_FP4_128:             /* the first, then eight bytes */
        pieces_at(format, at, 0, 1, to->word);
        to->d = floats_mul(floats_as(to->word[0]), floats_set(E4M3_AS_F16 / 2));
        break;
    case SH_PACKED_Q3_K:
        to->d = halves_at(format, at, 108);
        if (!at->is_group)
            pieces_at(format, at, 92, 1, to->word);
        for (int i = 1; i < WORDS && at->is_group; i++)     /* the first is not needed */
            to->word[i] = lane_word_at(format, at, 92 + 4 * i);
        put_sixteen_of_6(to);
        break;
    default: one_scale(format, at, to);
    }
}

/* The scale of span j, but for what is multiplied as an integer: lane_dot.h. */
UNPACK lane_floats lane_scale(enum sh_packing format, const struct lane_scales *s, int j)
{
    lane_ints four, two;
    if (sh_packed_is_points(format))
        return scale_of_points(&s->points, j);
    if (has_whole_scales(format))
        return s->d;
    switch (format) {
    case SH_PACKED_Q4_K: case SH_PACKED_Q5_K: return floats_mul(s->d, byte_of_words(s->word[j / 4], j % 4, 0));
    case SH_PACKED_Q6_K: return floats_mul(s->d, byte_of_words(s->word[j / 4], j % 4, 1));
    case SH_PACKED_Q2_K:
        return floats_mul(s->d, floats_of(ints_and(ints_right(s->word[j / 4], j % 4 * 8), ints_set(15))));
    case SH_PACKED_Q3_K:
        return floats_mul(s->d, floats_sub(byte_of_words(s->word[j / 4], j % 4, 0), floats_set(32)));
    case SH_PACKED_FP4_128:             /* e4m3_at */
        four = ints_and(ints_right(s->word[1 + j / 4], j % 4 * 8), ints_set(255));
        two = ints_or(ints_left(ints_and(four, ints_set(128)), 8), ints_left(ints_and(four, ints_set(127)), 7));
        return floats_mul(s->d, floats_of_low(two));
    case SH_PACKED_IQ4_XS:              /* times_8_of_6 */
        four = ints_and(ints_right(s->word[1], 4 * j), ints_set(15));
        two = ints_left(ints_and(ints_right(s->word[0], 16 + 2 * j), ints_set(3)), 4);
        return floats_mul(s->d, floats_of(ints_sub(ints_or(four, two), ints_set(32))));
    default: return s->d;
    }
}

/* What is subtracted in it, of formats that have it. */
UNPACK lane_floats lane_less(enum sh_packing format, const struct lane_scales *s, int j)
{
    if (format == SH_PACKED_Q2_K)
        return floats_mul(s->least, floats_of(ints_and(ints_right(s->word[j / 4], j % 4 * 8 + 4), ints_set(15))));
    if (has_one_scale(format) || format == SH_PACKED_INT4_128)
        return s->least;
    return floats_mul(s->least, byte_of_words(s->word[2 + j / 4], j % 4, 0));
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
    case SH_PACKED_Q4_1: case SH_PACKED_INT4_32: return (struct pieces){4, 1};
    case SH_PACKED_INT4_128: return (struct pieces){4, 4};
    case SH_PACKED_INT8_128: return (struct pieces){4, 8};
    case SH_PACKED_FP4_128: return (struct pieces){12, 4};
    case SH_PACKED_Q5_0: return (struct pieces){6, 1};
    case SH_PACKED_Q5_1: return (struct pieces){8, 1};
    case SH_PACKED_MXFP4: return (struct pieces){1, 1};
    case SH_PACKED_Q4_K: return (struct pieces){16, 8};
    case SH_PACKED_Q5_K: return (struct pieces){16, 10};
    case SH_PACKED_Q6_K: return (struct pieces){0, 12};
    case SH_PACKED_Q2_K: return (struct pieces){16, 4};
    case SH_PACKED_Q3_K: return (struct pieces){0, 6};
    case SH_PACKED_TQ1_0: return (struct pieces){0, 3};         /* and a word */
    case SH_PACKED_TQ2_0: return (struct pieces){0, 4};
    case SH_PACKED_Q1_0: return (struct pieces){2, 1};
    case SH_PACKED_IQ4_XS: return (struct pieces){8, 8};
    default: return (struct pieces){0, 1};      /* MXFP4_APART */
    }
}

/* The word of bits that Q5_0 and Q5_1 keep apart: bit k belongs to code k of the run. */
UNPACK int has_fifths(enum sh_packing format)
{
    return format == SH_PACKED_Q5_0 || format == SH_PACKED_Q5_1;
}

UNPACK int fifths_byte(enum sh_packing format)
{
    return format == SH_PACKED_Q5_1 ? 4 : 2;
}

/* With `more` added where bits 4 g to 4 g + 3 of the words are set. */
UNPACK lane_ints with_bits(lane_ints code, int more, lane_ints bits, int g)
{
    __m128i byte = _mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)(g / 2)));
    bits = ints_shuffle(bits, ints_repeat(byte));
    return bytes_add_where(code, more, bits, (int32_t)(g % 2 ? 0x80402010 : 0x08040201));
}

/* TQ1_0 (unpack.h): a digit of base 3 of each byte. */
UNPACK lane_ints lane_thirds(lane_ints word, int power)
{
    lane_ints even = ints_left(ints_and(word, ints_set(0x00ff00ff)), 8), odd = ints_and(word, ints_set(-0xff0100));
    even = pairs_multiply_high(pairs_multiply(even, pairs_set(power)), pairs_set(3));
    odd = pairs_multiply_high(pairs_multiply(odd, pairs_set(power)), pairs_set(3));
    return ints_or(even, ints_left(odd, 8));
}

/* Codes as numbers of a table, plus lane_offset. */
UNPACK lane_ints through_table(enum sh_packing format, lane_ints code)
{
    const __m128i iq4 = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
    const __m128i fp4 = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    switch (format) {
    case SH_PACKED_IQ4_NL: case SH_PACKED_IQ4_XS: return ints_shuffle(ints_repeat(iq4), code);
    case SH_PACKED_MXFP4: case SH_PACKED_MXFP4_APART: case SH_PACKED_FP4_128:
        return ints_shuffle(ints_repeat(fp4), code);
    default: return code;
    }
}

/* What codes are made of: a block's words, in a group as they are needed. */
struct lane_words {
    const struct lanes_at *at;
    lane_ints word[WORDS * MOST_PIECES], fifths;
};

UNPACK void words_of(enum sh_packing format, const struct lanes_at *at, struct lane_words *to)
{
    struct pieces p = pieces_of(format);
    to->at = at;
    if (sh_packed_is_points(format))
        return;
    if (!at->is_group)
        pieces_at(format, at, p.at, p.n, to->word);
    to->fifths = ints_set(0);
    if (!at->is_group && format == SH_PACKED_TQ1_0)
        to->word[12] = lane_word_at(format, at, 48);
    if (!at->is_group && has_fifths(format))
        to->fifths = lane_word_at(format, at, fifths_byte(format));
}

/* What codes_of(run) needs besides. */
UNPACK void words_of_run(enum sh_packing format, const struct lane_scales *scales, int run, struct lane_words *to)
{
    if (sh_packed_is_points(format))
        put_point_codes(format, &scales->points, run, to->word);
}

UNPACK lane_ints word_of(enum sh_packing format, const struct lane_words *w, int i)
{
    int skip = pieces_of(format).at + 4 * i;
    return w->at->is_group ? ints_load(w->at->group + LANES * group_place(format, skip)) : w->word[i];
}

/* TQ1_0: of 12 words, the first eight have five runs, the other four two and a half; half a run is in the last word. */
UNPACK lane_ints group_of_thirds(const struct lane_words *w, int run, int g)
{
    static const int powers[5] = {1, 3, 9, 27, 81};
    int digit = run < 5 ? run : run < 7 || g < 4 ? run * 2 - 10 + g / 4 : g - 4;
    int word = run < 5 ? g : run < 7 || g < 4 ? 8 + g % 4 : 12;
    return lane_thirds(word_of(SH_PACKED_TQ1_0, w, word), powers[digit]);
}

/* Group g of a run: unsigned bytes. */
UNPACK lane_ints codes_of(enum sh_packing format, const struct lane_words *w, int run, int g)
{
    int half = run / 4, quarter = run % 4;
    struct group_codes other = group_codes(format);
    if (w->at->is_group && other.bits)
        return group_code(other.bits, w->at->group + LANES * (other.place + run * 4 * other.bits), g);
    if (sh_packed_is_points(format))
        return w->word[g];
    switch (format) {
    case SH_PACKED_Q8_0: case SH_PACKED_INT8_128: return ints_xor(word_of(format, w, run * 8 + g), bytes_set(-128));
    case SH_PACKED_Q5_0: case SH_PACKED_Q5_1:
        return with_bits(moved(word_of(format, w, g % 4), g / 4 * 4, 0, 15), 16, w->fifths, g);
    case SH_PACKED_Q4_K: case SH_PACKED_INT4_128:
        return moved(word_of(format, w, run / 2 * 8 + g), run % 2 * 4, 0, 15);
    case SH_PACKED_Q5_K:
        return ints_or(moved(word_of(format, w, 8 + run / 2 * 8 + g), run % 2 * 4, 0, 15),
                       moved(word_of(format, w, g), run, 4, 16));
    case SH_PACKED_Q6_K:
        return ints_or(moved(word_of(format, w, half * 16 + run % 2 * 8 + g), quarter / 2 * 4, 0, 15),
                       moved(word_of(format, w, 32 + half * 8 + g), 2 * quarter, 4, 0x30));
    case SH_PACKED_FP4_128:
        return through_table(format, moved(word_of(format, w, run / 2 * 8 + g), run % 2 * 4, 0, 15));
    case SH_PACKED_Q2_K: case SH_PACKED_TQ2_0: return moved(word_of(format, w, half * 8 + g), 2 * quarter, 0, 3);
    case SH_PACKED_TQ1_0: return group_of_thirds(w, run, g);
    case SH_PACKED_Q1_0: return with_bits(ints_set(0), 2, word_of(format, w, run), g);
    case SH_PACKED_Q3_K:
        return ints_or(moved(word_of(format, w, 8 + half * 8 + g), 2 * quarter, 0, 3),
                       moved(word_of(format, w, g), run, 2, 4));
    default: return through_table(format, moved(word_of(format, w, run * 4 + g % 4), g / 4 * 4, 0, 15));
    }
}

/* ---- memory ---- */

/* What is asked for while blocks of rows are read: those that are read next, TOGETHER rows at each of FEW_PLACES
 * places, in the order of their addresses, which the memory serves faster than the order in which they are needed. */
struct ahead {
    size_t next, row_bytes;             /* from the blocks that are read; of a row                */
    size_t due, col;                    /* bytes to ask for; where in row `row`                   */
    int row;
};

UNPACK void ask_ahead(enum sh_packing format, struct ahead *a, const struct lanes_at *at)
{
    enum { LINE = 64 };
    for (a->due += TOGETHER * (size_t)sh_packing_shape(format).bytes; a->due >= LINE && !at->is_group; a->due -= LINE) {
        for (int k = 0; k < LANES; k += TOGETHER)
            __builtin_prefetch(at->row[k + a->row].b + a->next + a->col, 0, 2);
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
