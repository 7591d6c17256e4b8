/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of lattice points (kernels/packed.h: IQ1 to IQ3; src/model/files/gguf_iq.c describes them) as signed bytes
 * with scales: x = d * odd * code over a power of two. Indices point into tables (src/base/iq_points.h), and signs are
 * bits, so that codes do not come out of registers alone: a block is unpacked as a whole before kernels read it. */
#ifndef SH_KERNELS_CPU_UNPACK_POINTS_H
#define SH_KERNELS_CPU_UNPACK_POINTS_H

#include "kernels/cpu/packed_bytes.h"
#include "src/base/iq_points.h"

enum { POINTS_BLOCK = 256, POINTS_SPANS = 16 };

struct points {                         /* of a block                                              */
    int8_t code[POINTS_BLOCK];
    uint8_t odd[POINTS_SPANS];          /* of its spans                                            */
    unsigned char d[2];                 /* f16                                                     */
    unsigned char pad[14];
} __attribute__((aligned(32)));

/* What d * odd * code is too large by. */
UNPACK float points_unit(enum sh_packing format)
{
    return format == SH_PACKED_IQ3_S ? 1 : format == SH_PACKED_IQ3_XXS ? 0.25f : 0.125f;
}

UNPACK unsigned pair_at(const unsigned char *at)
{
    uint16_t pair;
    memcpy(&pair, at, sizeof pair);
    return pair;
}

/* The index of point i, of eight numbers or (IQ3) of four. */
UNPACK unsigned point_index(enum sh_packing format, const unsigned char *b, int i)
{
    switch (format) {
    case SH_PACKED_IQ1_S: return b[2 + i] | (pair_at(b + 34 + i / 4 * 2) >> 3 * (i % 4) & 7) << 8;
    case SH_PACKED_IQ1_M: return b[i] | ((unsigned)b[32 + i / 2] >> 4 * (i % 2) & 7) << 8;
    case SH_PACKED_IQ2_XXS: return b[2 + i / 4 * 8 + i % 4];
    case SH_PACKED_IQ2_XS: return pair_at(b + 2 + 2 * i) & 511;
    case SH_PACKED_IQ2_S: return b[2 + i] | ((unsigned)b[66 + i / 4] >> 2 * (i % 4) & 3) << 8;
    case SH_PACKED_IQ3_XXS: return b[2 + i];
    default: return b[2 + i] | ((unsigned)b[66 + i / 8] >> i % 8 & 1) << 8;
    }
}

/* Points [4 run, 4 run + 4) of eight numbers, those of IQ1 with their shift. */
UNPACK void put_eights(enum sh_packing format, const unsigned char *b, int run, int8_t *to)
{
#pragma GCC unroll 4
    for (int i = 4 * run; i < 4 * run + 4; i++, to += 8) {
        const unsigned index = point_index(format, b, i);
        const uint64_t two = 0x0202020202020202;
        uint64_t eight;
        switch (format) {
        case SH_PACKED_IQ1_S: eight = sh_iq1[index] - (b[35 + 2 * run] & 128 ? two : 0); break;
        case SH_PACKED_IQ1_M: eight = sh_iq1[index] - (b[32 + i / 2] >> 4 * (i % 2) & 8 ? two : 0); break;
        case SH_PACKED_IQ2_XXS: eight = sh_iq2_xxs[index]; break;
        case SH_PACKED_IQ2_XS: eight = sh_iq2_xs[index]; break;
        default: eight = sh_iq2_s[index];
        }
        memcpy(to, &eight, sizeof eight);
    }
}

/* Points [8 run, 8 run + 8) of four. */
UNPACK void put_fours(enum sh_packing format, const unsigned char *b, int run, int8_t *to)
{
#pragma GCC unroll 8
    for (int i = 8 * run; i < 8 * run + 8; i++, to += 4) {
        unsigned index = point_index(format, b, i);
        memcpy(to, format == SH_PACKED_IQ3_S ? &sh_iq3_s[index] : &sh_iq3_xxs[index], 4);
    }
}

/* Four times seven bits, each with an eighth that makes their number even. */
UNPACK uint32_t even_signs(uint32_t sevens)
{
    uint32_t parity = sevens ^ sevens >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return sevens | (parity & 0x01010101) << 7;
}

/* The signs of a run: a bit is set where a number is less than 0. */
UNPACK uint32_t point_signs(enum sh_packing format, const unsigned char *b, int run)
{
    uint32_t w, sevens = 0;
    switch (format) {
    case SH_PACKED_IQ2_S: return word_at(b + 34 + 4 * run);
    case SH_PACKED_IQ3_S: return word_at(b + 74 + 4 * run);
    case SH_PACKED_IQ2_XS:
        for (int i = 0; i < 4; i++)
            sevens |= pair_at(b + 2 + 8 * run + 2 * i) >> 9 << 8 * i;
        return even_signs(sevens);
    default:
        w = word_at(format == SH_PACKED_IQ2_XXS ? b + 6 + 8 * run : b + 66 + 4 * run);
        return even_signs((w & 0x7f) | (w & 0x3f80) << 1 | (w & 0x1fc000) << 2 | (w & 0xfe00000) << 3);
    }
}

/* Bytes that count from 128, with their signs. */
UNPACK void put_signs(int8_t *run, uint32_t bits)
{
    bytes32 code = *(const bytes32 *)(const void *)run;
#ifdef __AVX512F__
    __m256i all = (__m256i)code;
    code = (bytes32)_mm256_mask_sub_epi8(all, bits, _mm256_setzero_si256(), all);
#else
    bytes32 less = set_bytes(bits);
    code = (code ^ less) - less;
#endif
    *(bytes32 *)(void *)run = code ^ -128;
}

/* 2 s + 1 of each span. */
UNPACK void put_odds(enum sh_packing format, const unsigned char *b, uint8_t *odd)
{
    const unsigned char *s = b + (format == SH_PACKED_IQ2_XS ? 66 : format == SH_PACKED_IQ2_S ? 74 : 106);
    for (int i = 0; i < 8 && sh_packing_shape(format).span == RUN; i++) {
        int of = format == SH_PACKED_IQ1_S     ? b[35 + 2 * i] >> 4 & 7
                 : format == SH_PACKED_IQ2_XXS ? b[9 + 8 * i] >> 4
                 : format == SH_PACKED_IQ3_XXS ? b[69 + 4 * i] >> 4
                                               : s[i / 2] >> 4 * (i % 2) & 15;
        odd[i] = (uint8_t)(2 * of + 1);
    }
    for (int i = 0; i < POINTS_SPANS && sh_packing_shape(format).span < RUN; i++) {
        unsigned of = format == SH_PACKED_IQ1_M ? pair_at(b + 48 + i / 4 * 2) >> 3 * (i % 4) & 7
                                                : (unsigned)s[i / 2] >> 4 * (i % 2) & 15;
        odd[i] = (uint8_t)(2 * of + 1);
    }
}

UNPACK void unpack_points(enum sh_packing format, const unsigned char *b, struct points *to)
{
    int is_fours = format == SH_PACKED_IQ3_XXS || format == SH_PACKED_IQ3_S;
    int is_ternary = format == SH_PACKED_IQ1_S || format == SH_PACKED_IQ1_M;
    put_odds(format, b, to->odd);
    memcpy(to->d, b, sizeof to->d);
    if (format == SH_PACKED_IQ1_M) {
        to->d[0] = (unsigned char)(b[49] >> 4 | (b[51] & 0xf0));
        to->d[1] = (unsigned char)(b[53] >> 4 | (b[55] & 0xf0));
    }
#pragma GCC unroll 8
    for (int run = 0; run < POINTS_BLOCK / RUN; run++)
        if (is_fours)
            put_fours(format, b, run, to->code + run * RUN);
        else
            put_eights(format, b, run, to->code + run * RUN);
#pragma GCC unroll 8
    for (int run = 0; run < POINTS_BLOCK / RUN; run++)
        put_signs(to->code + run * RUN, is_ternary ? 0 : point_signs(format, b, run));
}

/* The scales of the spans of an unpacked block. */
UNPACK void scales_of_points(enum sh_packing format, const unsigned char *points, float *scale)
{
    const struct points *p = (const void *)points;
    float d = half_at(p->d) * points_unit(format);
    for (int i = 0; i < POINTS_BLOCK / sh_packing_shape(format).span; i++)
        scale[i] = d * (float)p->odd[i];
}

/* Functions of their own: inlined wherever they are used, they would be most of the program. */
#define FORMAT(name, elements, bytes, span, has_less)                                                                \
    static __attribute__((noinline, unused)) void unpack_##name##_points(const unsigned char *b, struct points *to)  \
    {                                                                                                                \
        unpack_points(SH_PACKED_##name, b, to);                                                                      \
    }
SH_PACKED_POINTS(FORMAT)
#undef FORMAT

/* Where kernels read a block: at its own place, or unpacked in `to`. */
UNPACK const unsigned char *readable(enum sh_packing format, const unsigned char *b, struct points *to)
{
    switch (format) {
#define FORMAT(name, elements, bytes, span, has_less) \
    case SH_PACKED_##name: unpack_##name##_points(b, to); return (const unsigned char *)to;
    SH_PACKED_POINTS(FORMAT)
#undef FORMAT
    default: return b;
    }
}

#endif
