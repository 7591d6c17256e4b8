/* SPDX-License-Identifier: Apache-2.0 */
/* The number formats of GGUF tensors. The quantised ones keep rows in blocks: a block is `elements`
 * neighbours in a row in `bytes` bytes, and represents exact f32 numbers. Layouts and formulas are
 * those of ggml (ggml-common.h, ggml-quants.c); f16 scales d, m come first unless said otherwise:
 *
 *     Q4_0   d, 16 bytes q                        x = d (q - 8)         low nibbles are the first 16
 *     Q4_1   d, m, 16 bytes q                     x = d q + m
 *     Q5_0   d, 4 bytes of fifth bits, 16 of q    x = d (q - 16)
 *     Q5_1   d, m, 4 bytes of fifth bits, 16 of q x = d q + m
 *     Q8_0   d, 32 signed bytes q                 x = d q
 *     Q4_K   d, m, 12 bytes of eight 6-bit pairs (s, t), 128 bytes q    x = d s q - m t, each 32 with its pair
 *     Q5_K   the same with 32 bytes of fifth bits before q
 *     Q6_K   128 bytes of low nibbles, 64 of upper pairs of bits, 16 signed s, d at the end
 *                                                 x = d s (q - 32), each 16 with its s
 *     Q2_K   16 bytes of nibbles (s, t), 64 bytes q of two bits, d, m    x = d s q - m t, each 16 with its pair
 *     Q3_K   32 bytes of third bits, 64 bytes q of two bits, 12 bytes of sixteen 6-bit s, d
 *                                                 x = d (s - 32) (q - 4), each 16 with its s
 *     MXFP4  a byte e, 16 bytes of 4-bit floats q x = 2^(e - 127) q
 *     NVFP4  four bytes s, 32 bytes of 4-bit floats q    x = s q, each 16 with its s, a float E4M3 without a sign
 *                                                 (127 is 0); low nibbles are the first 8 of 16
 *     TQ2_0  64 bytes q of two bits as in Q2_K, d x = d (q - 1)
 *     TQ1_0  52 bytes of five q each (the last four of four), d    x = d (q - 1): digits of base 3, of the fraction
 *                                                 byte / 256, the first of 32 bytes, then the second of these and so
 *                                                 on; then those of 16, and of four bytes
 *     Q1_0   d, 128 bits q                        x = d (2 q - 1)
 *
 * and the IQ formats of gguf_iq.c.
 *
 * Products of an f16 scale, a small scale and a small number have at most 24 bits, so
 * they are exact in f32 in any order. */
#include "src/model/files/gguf_tensors.h"

#include "src/base/num.h"

static float half_at(const unsigned char *at)
{
    return sh_f16_to_f32((uint16_t)(at[0] | at[1] << 8));
}

static uint32_t bits_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void unpack_q8_0(const unsigned char *b, float *out)
{
    float d = half_at(b);
    #pragma omp simd
    for (int i = 0; i < 32; i++)
        out[i] = d * (float)(int8_t)b[2 + i];
}

/* 32 numbers of four bits, and a fifth from `high`: first those of the low nibbles. Of m = NOTHING a sum
 * leaves even the sign of a zero alone. */
#define NOTHING (-0.0f)
static void unpack_32(const unsigned char *q, uint32_t high, float d, int zero, float m, float *out)
{
    unsigned char more[32] = {0};
    for (int i = 0; i < 32 && high; i++)
        more[i] = (unsigned char)((high >> i & 1) << 4);
    #pragma omp simd
    for (int i = 0; i < 16; i++) {
        int low = (q[i] & 15) | more[i], up = q[i] >> 4 | more[i + 16];
        out[i] = d * (float)(low - zero) + m;
        out[i + 16] = d * (float)(up - zero) + m;
    }
}

static void unpack_q4_0(const unsigned char *b, float *out)
{
    unpack_32(b + 2, 0, half_at(b), 8, NOTHING, out);
}

static void unpack_q4_1(const unsigned char *b, float *out)
{
    unpack_32(b + 4, 0, half_at(b), 0, half_at(b + 2), out);
}

static void unpack_q5_0(const unsigned char *b, float *out)
{
    unpack_32(b + 6, bits_at(b + 2), half_at(b), 16, NOTHING, out);
}

static void unpack_q5_1(const unsigned char *b, float *out)
{
    unpack_32(b + 8, bits_at(b + 4), half_at(b), 0, half_at(b + 2), out);
}

/* Pair j of eight: the first four are the low six bits of a byte each, the others four bits there and
 * two on top of an earlier byte. */
static void pair_at(const unsigned char *s, int j, float *scale, float *least)
{
    *scale = (float)(j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4);
    *least = (float)(j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4);
}

/* Two runs of 32 share 32 bytes; bit j of byte i of `high` is the fifth of number i of run j. */
static void unpack_k(const unsigned char *b, const unsigned char *high, const unsigned char *q, float *out)
{
    float d = half_at(b), m = half_at(b + 2), scale, least;
    for (int j = 0; j < 8; j++) {
        pair_at(b + 4, j, &scale, &least);
        const unsigned char *run = q + j / 2 * 32;
        float by = d * scale, less = m * least;
        int shift = j % 2 * 4;
        #pragma omp simd
        for (int i = 0; i < 32; i++)
            out[j * 32 + i] = by * (float)((run[i] >> shift & 15) | (high[i] >> j & 1) << 4) - less;
    }
}

static void unpack_q4_k(const unsigned char *b, float *out)
{
    static const unsigned char none[32];
    unpack_k(b, none, b + 16, out);
}

static void unpack_q5_k(const unsigned char *b, float *out)
{
    unpack_k(b, b + 16, b + 48, out);
}

/* In each half of 128: four runs of 32, two in low and two in high nibbles of 64 bytes, their upper bits
 * side by side in 32. */
static void unpack_q6_k(const unsigned char *b, float *out)
{
    float d = half_at(b + 208);
    for (int part = 0; part < 16; part++) {             /* of 16, which share a scale              */
        int half = part / 8, run = part % 8 / 2, at = part % 2 * 16, shift = run / 2 * 4;
        const unsigned char *low = b + half * 64 + run % 2 * 32 + at, *high = b + 128 + half * 32 + at;
        float by = d * (float)(int8_t)b[192 + part];
        #pragma omp simd
        for (int i = 0; i < 16; i++)
            out[part * 16 + i] = by * (float)(((low[i] >> shift & 15) | (high[i] >> (2 * run) & 3) << 4) - 32);
    }
}

/* In each half of 128, 32 bytes: two bits of each for one of four runs of 32. */
static void unpack_q2_k(const unsigned char *b, float *out)
{
    float d = half_at(b + 80), m = half_at(b + 82);
    for (int part = 0; part < 16; part++) {
        const unsigned char *q = b + 16 + part / 8 * 32 + part % 2 * 16;
        float by = d * (float)(b[part] & 15), less = m * (float)(b[part] >> 4);
        #pragma omp simd
        for (int i = 0; i < 16; i++)
            out[part * 16 + i] = by * (float)(q[i] >> part % 8 / 2 * 2 & 3) - less;
    }
}

/* Scale j of sixteen: four low bits in eight bytes, two high ones in the last four. */
static void unpack_q3_k(const unsigned char *b, float *out)
{
    const unsigned char *s = b + 96;
    float d = half_at(b + 108);
    for (int part = 0; part < 16; part++) {
        const unsigned char *q = b + 32 + part / 8 * 32 + part % 2 * 16, *high = b + part % 2 * 16;
        int scale = (s[part % 8] >> part / 8 * 4 & 15) | (s[8 + part % 4] >> part / 4 * 2 & 3) << 4;
        float by = d * (float)(scale - 32);
        #pragma omp simd
        for (int i = 0; i < 16; i++)
            out[part * 16 + i] = by * (float)((q[i] >> part % 8 / 2 * 2 & 3) + 4 * (high[i] >> part / 2 & 1) - 4);
    }
}

static void unpack_mxfp4(const unsigned char *b, float *out)
{
    float half = sh_e8m0_half(b[0]);
    for (int i = 0; i < 16; i++) {
        out[i] = half * sh_fp4_twice(b[1 + i] & 15u);
        out[i + 16] = half * sh_fp4_twice(b[1 + i] >> 4);
    }
}

static void unpack_nvfp4(const unsigned char *b, float *out)
{
    for (int part = 0; part < 4; part++, out += 16) {
        const unsigned char *q = b + 4 + part * 8;
        float half = b[part] == 127 ? 0 : sh_from_bits((b[part] & 127u) << 20) * 0x1p119f;
        for (int i = 0; i < 8; i++) {
            out[i] = half * sh_fp4_twice(q[i] & 15u);
            out[i + 8] = half * sh_fp4_twice(q[i] >> 4);
        }
    }
}

static void unpack_tq2_0(const unsigned char *b, float *out)
{
    float d = half_at(b + 64);
    for (int run = 0; run < 8; run++)
        #pragma omp simd
        for (int i = 0; i < 32; i++)
            out[run * 32 + i] = d * (float)((b[run / 4 * 32 + i] >> run % 4 * 2 & 3) - 1);
}

/* n bytes; power: of 3. */
static float *unpack_thirds(const unsigned char *q, int n, unsigned power, float d, float *out)
{
    #pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = d * (float)((int)((q[i] * power & 255) * 3 >> 8) - 1);
    return out + n;
}

static void unpack_tq1_0(const unsigned char *b, float *out)
{
    static const struct { int at, n, digits; } parts[] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
    for (int k = 0; k < 3; k++) {
        unsigned power = 1;
        for (int i = 0; i < parts[k].digits; i++, power *= 3)
            out = unpack_thirds(b + parts[k].at, parts[k].n, power, half_at(b + 52), out);
    }
}

static void unpack_q1_0(const unsigned char *b, float *out)
{
    float d = half_at(b);
    for (int i = 0; i < 128; i++)
        out[i] = b[2 + i / 8] >> i % 8 & 1 ? d : -d;
}

/* Those that cannot be unpacked are here for their names and sizes. */
static const struct sh_gguf_type types[] = {
    {0, "F32", 1, 4, NULL, SH_PACKED_OTHER}, {1, "F16", 1, 2, NULL, SH_PACKED_F16},
    {30, "BF16", 1, 2, NULL, SH_PACKED_BF16},
    {2, "Q4_0", 32, 18, unpack_q4_0, SH_PACKED_Q4_0}, {3, "Q4_1", 32, 20, unpack_q4_1, SH_PACKED_Q4_1},
    {6, "Q5_0", 32, 22, unpack_q5_0, SH_PACKED_Q5_0}, {7, "Q5_1", 32, 24, unpack_q5_1, SH_PACKED_Q5_1},
    {8, "Q8_0", 32, 34, unpack_q8_0, SH_PACKED_Q8_0}, {12, "Q4_K", 256, 144, unpack_q4_k, SH_PACKED_Q4_K},
    {13, "Q5_K", 256, 176, unpack_q5_k, SH_PACKED_Q5_K}, {14, "Q6_K", 256, 210, unpack_q6_k, SH_PACKED_Q6_K},
    {10, "Q2_K", 256, 84, unpack_q2_k, SH_PACKED_Q2_K}, {11, "Q3_K", 256, 110, unpack_q3_k, SH_PACKED_Q3_K},
    {39, "MXFP4", 32, 17, unpack_mxfp4, SH_PACKED_MXFP4}, {40, "NVFP4", 64, 36, unpack_nvfp4, SH_PACKED_OTHER},
    {9, "Q8_1", 32, 36, NULL, SH_PACKED_OTHER}, {15, "Q8_K", 256, 292, NULL, SH_PACKED_OTHER},
    {24, "I8", 1, 1, NULL, SH_PACKED_OTHER}, {25, "I16", 1, 2, NULL, SH_PACKED_OTHER},
    {26, "I32", 1, 4, NULL, SH_PACKED_OTHER}, {27, "I64", 1, 8, NULL, SH_PACKED_OTHER},
    {28, "F64", 1, 8, NULL, SH_PACKED_OTHER}, {34, "TQ1_0", 256, 54, unpack_tq1_0, SH_PACKED_TQ1_0},
    {35, "TQ2_0", 256, 66, unpack_tq2_0, SH_PACKED_TQ2_0}, {41, "Q1_0", 128, 18, unpack_q1_0, SH_PACKED_Q1_0}};

const struct sh_gguf_type *sh_gguf_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    for (size_t i = 0; i < SH_N_IQ; i++)
        if (sh_gguf_iq_types[i].number == number)
            return &sh_gguf_iq_types[i];
    return NULL;
}

void sh_gguf_unpack_row(const struct sh_gguf_type *t, const unsigned char *row, size_t n, float *out)
{
    for (size_t i = 0; i < n / t->elements; i++)
        t->unpack(row + i * t->bytes, out + i * t->elements);
}
