/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of codes in lanes (packed_lanes.h) and a row of x (lane_run.h), span by span.
 *
 * VNNI multiplies pairs of bytes and adds the products in fours, 64 of them (AVX-512) or 32 (AVX-VNNI). AVX2 alone
 * multiplies 32 and adds them in pairs, as 16-bit numbers. These are widened once for a part of a run, and where the
 * scale is an integer, the same instruction multiplies by it. Codes of 8 bits AVX2 multiplies as 16-bit numbers.
 *
 * bits: of x, a constant: with 8 only low bytes are multiplied.
 *
 * The sum of a span (with AVX2 alone times its integer scale) is an exact integer below 2^31: the largest is
 * 16 * 32 * 128 * (127 * BASE + 127), of Q6_K. It is rounded once to f32, and these are added in order of the spans, so
 * that a row is the same bits alone and among any others, few or many, from a group or from blocks. */
#ifndef SH_KERNELS_CPU_LANE_DOT_H
#define SH_KERNELS_CPU_LANE_DOT_H

#include "kernels/cpu/packed_lanes.h"

#ifdef __AVX2__

/* Group g of a run of x. */
UNPACK int32_t four_of(const int8_t *x, int g)
{
    int32_t four;
    memcpy(&four, x + GROUP * g, GROUP);
    return four;
}

#ifdef HAS_DOTS

/* Codes of a group as products take them; the integer scale of a span, which is none here; sums. */
struct lane_codes {
    lane_ints bytes;
};
struct lane_whole {
    char none;
};
struct lane_dot {
    lane_ints high, low;
};

/* Parts of a run whose sums are taken apart. */
UNPACK int parts_of_run(enum sh_packing format)
{
    return spans_of_run(format);
}

UNPACK struct lane_codes codes_for_dot(enum sh_packing format, lane_ints code)
{
    (void)format;
    return (struct lane_codes){code};
}

UNPACK struct lane_whole whole_scale(enum sh_packing format, const struct lane_scales *s, int j)
{
    (void)format, (void)s, (void)j;
    return (struct lane_whole){0};
}

UNPACK struct lane_dot dot_start(enum sh_packing format, int bits, const struct lane_run *x, int part)
{
    (void)format, (void)bits;
    return (struct lane_dot){ints_set(0), ints_set(x->start[part])};
}

LANES_INLINE void dot_add(enum sh_packing format, int bits, struct lane_dot *to, const struct lane_codes *code,
                          const struct lane_run *x, int g)
{
    (void)format;
    if (bits == 16)
        to->high = ints_add_dots(to->high, code->bytes, ints_set(four_of(x->high, g)));
    to->low = ints_add_dots(to->low, code->bytes, ints_set(four_of(x->low, g)));
}

UNPACK lane_ints dot_end(enum sh_packing format, int bits, const struct lane_dot *dot, const struct lane_whole *scale)
{
    (void)format, (void)scale;
    return bits == 8 ? dot->low : ints_add(ints_left(dot->high, 8), dot->low);
}

#else

struct lane_codes {
    lane_ints bytes, odd;               /* of codes of 8 bits the even ones and the odd ones, of 16 bits */
};
struct lane_whole {                     /* pairs of 16-bit numbers                                */
    lane_ints scale, scale_of_high;     /* the second is BASE times the first                     */
};
struct lane_dot {
    lane_ints high, low;                /* pairs of 16-bit numbers; of codes of 8 bits the sum is in low */
};

/* A 16-bit sum has half of the products of a part. Codes of 5 bits without an offset: 16 * 31 * 127 is more than 32767,
 * so it has 8. */
UNPACK int parts_of_run(enum sh_packing format)
{
    return format == SH_PACKED_Q5_1 || format == SH_PACKED_Q5_K ? 2 : spans_of_run(format);
}

UNPACK struct lane_codes codes_for_dot(enum sh_packing format, lane_ints code)
{
    if (in_bytes(format))
        return (struct lane_codes){.bytes = code};
    return (struct lane_codes){ints_and(code, ints_set(0x00ff00ff)), pairs_right(code, 8)};
}

/* Byte j of each word in the upper half of both of its 16-bit numbers. */
UNPACK lane_ints byte_in_pairs(lane_ints word, int j)
{
    __m128i place = _mm_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00);
    place = _mm_add_epi16(place, _mm_set1_epi16((short)(j << 8 | 0x80)));
    return ints_shuffle(word, ints_repeat(place));
}

/* Of span j of a block. */
UNPACK struct lane_whole whole_scale(enum sh_packing format, const struct lane_scales *s, int j)
{
    lane_ints upper, scale;
    if (!has_whole_scales(format))
        return (struct lane_whole){pairs_set(1), pairs_set(BASE)};
    upper = byte_in_pairs(format == SH_PACKED_Q2_K ? masked(s->word[j / 4], 15) : s->word[j / 4], j % 4);
    scale = pairs_right_signed(upper, 8);
    return (struct lane_whole){scale, pairs_sub(upper, scale)};
}

UNPACK struct lane_dot dot_start(enum sh_packing format, int bits, const struct lane_run *x, int part)
{
    if (lane_offset(format) == 0)
        return (struct lane_dot){ints_set(0), ints_set(0)};
    int has_high = in_bytes(format) && bits == 16;
    return (struct lane_dot){ints_set(has_high ? x->high_start[part] : 0), ints_set(x->start[part])};
}

UNPACK int32_t pair_of(const int16_t *x, int i)
{
    int32_t pair;
    memcpy(&pair, x + 2 * i, sizeof pair);
    return pair;
}

/* Without the empty asm gcc adds sums to sums, for which there are not enough registers. */
UNPACK void dot_add(enum sh_packing format, int bits, struct lane_dot *to, const struct lane_codes *code,
                    const struct lane_run *x, int g)
{
    if (in_bytes(format) && bits == 8) {
        to->low = pairs_add(to->low, ints_multiply_add_bytes(code->bytes, ints_set(four_of(x->low, g))));
    } else if (in_bytes(format)) {
        to->high = pairs_add(to->high, ints_multiply_add_bytes(code->bytes, ints_set(four_of(x->high, g))));
        to->low = pairs_add(to->low, ints_multiply_add_bytes(code->bytes, ints_set(four_of(x->low, g))));
        __asm__("" : "+x"(to->high.v[0]), "+x"(to->high.v[1]));
    } else {
        to->low = ints_add(to->low, ints_multiply_add(code->bytes, ints_set(pair_of(x->pairs, 2 * g))));
        to->low = ints_add(to->low, ints_multiply_add(code->odd, ints_set(pair_of(x->pairs, 2 * g + 1))));
    }
    __asm__("" : "+x"(to->low.v[0]), "+x"(to->low.v[1]));
}

UNPACK lane_ints dot_end(enum sh_packing format, int bits, const struct lane_dot *dot, const struct lane_whole *scale)
{
    if (!in_bytes(format))
        return dot->low;
    if (bits == 8)
        return ints_multiply_add(dot->low, scale->scale);
    return ints_add(ints_multiply_add(dot->high, scale->scale_of_high), ints_multiply_add(dot->low, scale->scale));
}

#endif

UNPACK struct lane_dot dot_zero(void)
{
    return (struct lane_dot){ints_set(0), ints_set(0)};
}

/* Of codes that are not in bytes, or with AVX-512. */
UNPACK struct lane_dot dots_add(const struct lane_dot *a, const struct lane_dot *b)
{
    return (struct lane_dot){ints_add(a->high, b->high), ints_add(a->low, b->low)};
}

/* sum and what span j of a run of x gives, whose codes times n add up to `dot`. less: NULL where there is none. */
UNPACK lane_floats add_span(lane_floats sum, lane_ints dot, const struct lane_run *x, int j, const lane_floats *scale,
                            const lane_floats *less)
{
    sum = floats_add_mul(sum, floats_mul(floats_of(dot), floats_set(x->scale)), *scale);
    return less ? floats_sub_mul(sum, *less, floats_set(x->sum[j])) : sum;
}

#endif
#endif
