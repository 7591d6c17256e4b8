/* SPDX-License-Identifier: Apache-2.0 */
/* The IQ formats of GGUF (ggml-common.h, ggml-quants.c): blocks of 256 numbers, x = d s p with the block's f16 scale d,
 * a small scale s of a run, and coordinates p of points of a lattice (src/base/iq_points.h), with signs. Scales d come
 * first unless said otherwise; h: upper bits of the points' indices.
 *
 *     IQ2_XXS  8 runs of 32: 4 bytes of indices, then 7 bits for the signs of each 8 and s in the upper four
 *     IQ2_XS   32 words: 9 bits of index, 7 of signs; 8 bytes s        IQ2_S   32 indices, 32 signs, 8 h, 8 s
 *     IQ3_XXS  64 indices; 8 words of signs and s as in IQ2_XXS        IQ3_S   64 indices, 8 h, 32 signs, 4 s
 *     IQ1_S    32 indices; 8 words: h, 3 bits s, the sign of a shift   IQ1_M   32 indices, 16 h and signs of shifts,
 *                                                                              8 s with d in their upper four bits
 *     IQ4_NL   blocks of 32, d, 16 bytes: x = d t[q] of a table        IQ4_XS  256, d, 2 + 4 bytes s: x = d s t[q]
 *
 * Seven bits stand for eight signs; the eighth makes their number even. Products have at most 24 bits, so they
 * are exact in f32. */
#include "src/base/iq_points.h"
#include "src/base/num.h"
#include "src/model/files/gguf_tensors.h"

#define WORD(point) point,
static const uint16_t iq1_grid[SH_N_IQ1] = {SH_IQ1_POINTS(WORD)};
static const uint16_t iq2_xxs_grid[SH_N_IQ2_XXS] = {SH_IQ2_XXS_POINTS(WORD)};
static const uint16_t iq2_xs_grid[SH_N_IQ2_XS] = {SH_IQ2_XS_POINTS(WORD)};
static const uint16_t iq2_s_grid[SH_N_IQ2_S] = {SH_IQ2_S_POINTS(WORD)};
static const uint16_t iq3_xxs_grid[SH_N_IQ3_XXS] = {SH_IQ3_XXS_POINTS(WORD)};
static const uint16_t iq3_s_grid[SH_N_IQ3_S] = {SH_IQ3_S_POINTS(WORD)};
#undef WORD

static uint32_t bytes_at(const unsigned char *at, int n)
{
    uint32_t all = 0;
    for (int i = 0; i < n; i++)
        all |= (uint32_t)at[i] << 8 * i;
    return all;
}

static float half_at(const unsigned char *at)
{
    return sh_f16_to_f32((uint16_t)bytes_at(at, 2));
}

/* The eighth sign makes their number even. */
static unsigned eight_signs(unsigned seven)
{
    seven &= 127;
    return seven | ((unsigned)__builtin_popcount(seven) & 1) << 7;
}

/* Eight numbers of a point with coordinates in two bits. */
static void put_8(unsigned point, unsigned signs, float scale, float *out)
{
    static const float at[4] = {8, 25, 43, 0};
    for (int i = 0; i < 8; i++)
        out[i] = (signs >> i & 1 ? -scale : scale) * at[point >> 2 * i & 3];
}

/* Four of three bits: first + step * coordinate; the last coordinate of IQ3_XXS is 62. */
static void put_4(unsigned point, unsigned signs, float scale, int first, int step, float *out)
{
    for (int i = 0; i < 4; i++) {
        int k = (int)(point >> 3 * i & 7), at = first + step * k + (step == 8 && k == 7 ? 2 : 0);
        out[i] = (signs >> i & 1 ? -scale : scale) * (float)at;
    }
}

static void unpack_iq2_xxs(const unsigned char *b, float *out)
{
    for (int run = 0; run < 8; run++) {
        const unsigned char *at = b + 2 + 8 * run;
        uint32_t signs = bytes_at(at + 4, 4);
        float scale = half_at(b) * (0.5f + (float)(signs >> 28)) * 0.25f;
        for (int i = 0; i < 4; i++)
            put_8(iq2_xxs_grid[at[i]], eight_signs(signs >> 7 * i), scale, out + 32 * run + 8 * i);
    }
}

static float scale_2(const unsigned char *b, const unsigned char *s, int i)
{
    return half_at(b) * (0.5f + (float)(s[i / 4] >> 4 * (i / 2 % 2) & 15)) * 0.25f;
}

static void unpack_iq2_xs(const unsigned char *b, float *out)
{
    for (int i = 0; i < 32; i++) {
        uint32_t word = bytes_at(b + 2 + 2 * i, 2);
        put_8(iq2_xs_grid[word & 511], eight_signs(word >> 9), scale_2(b, b + 66, i), out + 8 * i);
    }
}

static void unpack_iq2_s(const unsigned char *b, float *out)
{
    for (int i = 0; i < 32; i++) {
        unsigned index = b[2 + i] | ((unsigned)b[66 + i / 4] >> 2 * (i % 4) & 3) << 8;
        put_8(iq2_s_grid[index], b[34 + i], scale_2(b, b + 74, i), out + 8 * i);
    }
}

static void unpack_iq3_xxs(const unsigned char *b, float *out)
{
    for (int i = 0; i < 64; i++) {
        uint32_t word = bytes_at(b + 66 + i / 8 * 4, 4);
        unsigned signs = eight_signs(word >> 7 * (i / 2 % 4)) >> 4 * (i % 2);
        float scale = half_at(b) * (0.5f + (float)(word >> 28)) * 0.5f;
        put_4(iq3_xxs_grid[b[2 + i]], signs, scale, 4, 8, out + 4 * i);
    }
}

static void unpack_iq3_s(const unsigned char *b, float *out)
{
    for (int i = 0; i < 64; i++) {
        unsigned index = b[2 + i] | ((unsigned)b[66 + i / 8] >> i % 8 & 1) << 8;
        int s = b[106 + i / 16] >> 4 * (i / 8 % 2) & 15;
        put_4(iq3_s_grid[index], (unsigned)b[74 + i / 2] >> 4 * (i % 2), half_at(b) * (float)(1 + 2 * s), 1, 2,
              out + 4 * i);
    }
}

/* Coordinates -1, 0, 1, all shifted by an eighth. */
static void put_ternary(unsigned point, int is_less, float scale, float *out)
{
    for (int i = 0; i < 8; i++)
        out[i] = scale * ((float)(int)(point >> 2 * i & 3) - 1 + (is_less ? -0.125f : 0.125f));
}

static void unpack_iq1_s(const unsigned char *b, float *out)
{
    for (int i = 0; i < 32; i++) {
        uint32_t h = bytes_at(b + 34 + i / 4 * 2, 2);
        unsigned index = b[2 + i] | (h >> 3 * (i % 4) & 7) << 8;
        put_ternary(iq1_grid[index], h >> 15 & 1, half_at(b) * (float)(2 * (h >> 12 & 7) + 1), out + 8 * i);
    }
}

static void unpack_iq1_m(const unsigned char *b, float *out)
{
    uint32_t d = 0;
    for (int i = 0; i < 4; i++)
        d |= bytes_at(b + 48 + 2 * i, 2) >> 12 << 4 * i;
    for (int i = 0; i < 32; i++) {
        unsigned h = (unsigned)b[32 + i / 2] >> 4 * (i % 2) & 15;
        uint32_t s = bytes_at(b + 48 + i / 8 * 2, 2) >> 3 * (i / 2 % 4) & 7;
        float scale = sh_f16_to_f32((uint16_t)d) * (float)(2 * s + 1);
        put_ternary(iq1_grid[b[i] | (h & 7) << 8], h >> 3 & 1, scale, out + 8 * i);
    }
}

/* 32 numbers of a table, the first half in the low nibbles. */
static void put_32(const unsigned char *q, float scale, float *out)
{
    static const float table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    for (int i = 0; i < 16; i++) {
        out[i] = scale * table[q[i] & 15];
        out[i + 16] = scale * table[q[i] >> 4];
    }
}

static void unpack_iq4_nl(const unsigned char *b, float *out)
{
    put_32(b + 2, half_at(b), out);
}

static void unpack_iq4_xs(const unsigned char *b, float *out)
{
    for (int run = 0; run < 8; run++) {
        uint32_t high = bytes_at(b + 2, 2) >> 2 * run & 3, low = (uint32_t)b[4 + run / 2] >> 4 * (run % 2) & 15;
        put_32(b + 8 + 16 * run, half_at(b) * (float)((int)(low | high << 4) - 32), out + 32 * run);
    }
}

const struct sh_gguf_type sh_gguf_iq_types[SH_N_IQ] = {
    {16, "IQ2_XXS", 256, 66, unpack_iq2_xxs, SH_PACKED_IQ2_XXS},
    {17, "IQ2_XS", 256, 74, unpack_iq2_xs, SH_PACKED_IQ2_XS},
    {18, "IQ3_XXS", 256, 98, unpack_iq3_xxs, SH_PACKED_IQ3_XXS},
    {19, "IQ1_S", 256, 50, unpack_iq1_s, SH_PACKED_IQ1_S},
    {20, "IQ4_NL", 32, 18, unpack_iq4_nl, SH_PACKED_IQ4_NL}, {21, "IQ3_S", 256, 110, unpack_iq3_s, SH_PACKED_IQ3_S},
    {22, "IQ2_S", 256, 82, unpack_iq2_s, SH_PACKED_IQ2_S}, {23, "IQ4_XS", 256, 136, unpack_iq4_xs, SH_PACKED_IQ4_XS},
    {29, "IQ1_M", 256, 56, unpack_iq1_m, SH_PACKED_IQ1_M}};
