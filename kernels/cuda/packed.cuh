/* SPDX-License-Identifier: Apache-2.0 */
/* Eight neighbours of a row out of a block of packed weights (kernels/packed.h) as floats, the same numbers as
 * src/model/files/gguf_type.c and gguf_iq.c unpack. Layouts are described there. Blocks lie where their sizes put them:
 * at even addresses, or at any where a block's size is odd. */
#ifndef SH_KERNELS_CUDA_PACKED_CUH
#define SH_KERNELS_CUDA_PACKED_CUH

#include "kernels/cuda/points.cuh"

enum { PACKED_EIGHT = 8 };

/* Eight bytes in two words; ALIGN: what their address is a multiple of. */
template <int ALIGN> static __device__ __forceinline__ uint2 bytes_at(const unsigned char *at)
{
    if constexpr (ALIGN == 4) {
        const unsigned *w = (const unsigned *)at;
        return make_uint2(w[0], w[1]);
    } else if constexpr (ALIGN == 2) {
        const unsigned short *w = (const unsigned short *)at;
        return make_uint2(w[0] | (unsigned)w[1] << 16, w[2] | (unsigned)w[3] << 16);
    } else {
        return make_uint2(at[0] | at[1] << 8 | at[2] << 16 | (unsigned)at[3] << 24,
                          at[4] | at[5] << 8 | at[6] << 16 | (unsigned)at[7] << 24);
    }
}

static __device__ __forceinline__ unsigned byte_of(uint2 bytes, int i)
{
    return (i < 4 ? bytes.x : bytes.y) >> (i % 4 * 8) & 255u;
}

/* Of 16 numbers of four bits: those of the low nibbles come first. */
template <int ALIGN>
static __device__ __forceinline__ void nibbles_at(const unsigned char *q, int first, unsigned code[PACKED_EIGHT])
{
    uint2 bytes = bytes_at<ALIGN>(q + first % 16);
#pragma unroll
    for (int i = 0; i < PACKED_EIGHT; i++)
        code[i] = byte_of(bytes, i) >> (first < 16 ? 0 : 4) & 15u;
}

static __device__ __forceinline__ float fp4_twice(unsigned code)
{
    unsigned size = code & 7u, twice = size < 2 ? size : (2u | (size & 1u)) << (size / 2 - 1);
    return code & 8u ? -(float)twice : (float)twice;
}

static __device__ __forceinline__ float e8m0_half(unsigned e)
{
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

static __device__ __forceinline__ float iq4_number(unsigned code)
{
    unsigned long long eight = code < 8 ? 0xf6eaddcfbfad9881ull : 0x7159453526190d01ull;
    return (float)(signed char)(eight >> (code % 8 * 8) & 255u);
}

/* Pair j of a K block's eight: scale and minimum. */
static __device__ __forceinline__ uint2 k_pair(const unsigned char *s, int j)
{
    return j < 4 ? make_uint2(s[j] & 63u, s[j + 4] & 63u)
                 : make_uint2((s[j + 4] & 15u) | (unsigned)(s[j - 4] >> 6) << 4,
                              (unsigned)(s[j + 4] >> 4) | (unsigned)(s[j] >> 6) << 4);
}

/* The first word of a block of INT4: a scale, whose lowest byte counts as 0 and is the zero point. */
static __device__ __forceinline__ float2 int4_head(const unsigned char *b)
{
    unsigned word = *(const unsigned *)b;
    float scale = __uint_as_float(word & 0xffffff00u);
    return make_float2(scale, scale * (float)(word & 255u));
}

/* What a number is made of: scale * code - less, code a small whole number. */
struct eight {
    float scale, less, code[PACKED_EIGHT];
};

/* Formats of 32 numbers with one scale. */
template <int FORMAT>
static __device__ __forceinline__ void eight_of_32(const unsigned char *b, const unsigned char *apart, int first,
                                                   struct eight *e)
{
    enum { FIVE = FORMAT == SH_PACKED_Q5_0 || FORMAT == SH_PACKED_Q5_1,
           SUMS = FORMAT == SH_PACKED_Q4_1 || FORMAT == SH_PACKED_Q5_1,
           Q = (SUMS ? 4 : 2) + (FIVE ? 4 : 0),
           ALIGN = packing<FORMAT>::BYTES % 4 == 0 ? 4 : packing<FORMAT>::BYTES % 2 == 0 ? 2 : 1 };
    unsigned code[PACKED_EIGHT];
    int zero = FORMAT == SH_PACKED_Q4_0 ? 8 : FORMAT == SH_PACKED_Q5_0 ? 16 : 0;
    if constexpr (FORMAT == SH_PACKED_Q8_0) {
        uint2 bytes = bytes_at<2>(b + 2 + first);
        e->scale = half_at(b);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)(signed char)byte_of(bytes, i);
    } else if constexpr (FORMAT == SH_PACKED_MXFP4_APART) {     /* neighbours share a byte */
        unsigned four = *(const unsigned *)(b + first / 2);
        e->scale = e8m0_half(*apart);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = fp4_twice(four >> (4 * i) & 15u);
    } else if constexpr (FORMAT == SH_PACKED_MXFP4) {
        nibbles_at<1>(b + 1, first, code);
        e->scale = e8m0_half(b[0]);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = fp4_twice(code[i]);
    } else if constexpr (FORMAT == SH_PACKED_INT4_32) {
        float2 head = int4_head(b);
        nibbles_at<4>(b + 4, first, code);
        e->scale = head.x;
        e->less = head.y;
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)code[i];
    } else if constexpr (FORMAT == SH_PACKED_IQ4_NL) {
        nibbles_at<2>(b + 2, first, code);
        e->scale = half_at(b);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = iq4_number(code[i]);
    } else {
        nibbles_at<ALIGN>(b + Q, first, code);
        e->scale = half_at(b);
        if constexpr (SUMS)
            e->less = -half_at(b + 2);
        const unsigned char *high = b + Q - 4 + first / 8;
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)((int)(code[i] | (FIVE ? (unsigned)(*high >> i & 1) << 4 : 0u)) - zero);
    }
}

/* NF4: 64 numbers, of which neighbours by 32 share bytes. */
static __device__ __forceinline__ void eight_of_nf4(const unsigned char *b, int first, struct eight *e)
{
    const float all[16] = {SH_NF4_NUMBERS};
    uint2 q = bytes_at<4>(b + 4 + first % 32);
    e->scale = __uint_as_float(*(const unsigned *)b);
#pragma unroll
    for (int i = 0; i < PACKED_EIGHT; i++) {
        unsigned code = byte_of(q, i) >> (first < 32 ? 0 : 4) & 15u;
        float number = all[0];
#pragma unroll
        for (unsigned k = 1; k < 16; k++)               /* without an array in memory */
            number = code == k ? all[k] : number;
        e->code[i] = number;
    }
}

/* Of E4M3 and E5M2: as f16 numbers, those of E4M3 over 256. */
template <int FORMAT>
static __device__ __forceinline__ void eight_of_floats(const unsigned char *b, int first, struct eight *e)
{
    enum { IS_E5M2 = FORMAT == SH_PACKED_E5M2_128 };
    uint2 q = bytes_at<4>(b + 4 + first);
    e->scale = __uint_as_float(*(const unsigned *)b) * (IS_E5M2 ? 1.0f : 256.0f);
#pragma unroll
    for (int i = 0; i < PACKED_EIGHT; i++) {
        unsigned code = byte_of(q, i);
        e->code[i] = half_of(IS_E5M2 ? code << 8 : (code & 128u) << 8 | (code & 127u) << 7, 0);
    }
}

/* Formats of 128. */
template <int FORMAT>
static __device__ __forceinline__ void eight_of_128(const unsigned char *b, int first, struct eight *e)
{
    if constexpr (FORMAT == SH_PACKED_INT4_128) {
        float2 head = int4_head(b);
        uint2 q = bytes_at<4>(b + 4 + first / 64 * 32 + first % 32);
        e->scale = head.x;
        e->less = head.y;
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)(byte_of(q, i) >> (first / 32 % 2 * 4) & 15u);
    } else if constexpr (FORMAT == SH_PACKED_FP4_128) {
        unsigned s = b[4 + first / 16];
        uint2 q = bytes_at<4>(b + 12 + first / 64 * 32 + first % 32);
        float scale = half_of((s & 128u) << 8 | (s & 127u) << 7, 0) * 256.0f;
        e->scale = scale * __uint_as_float(*(const unsigned *)b) * 0.5f;
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = fp4_twice(byte_of(q, i) >> (first / 32 % 2 * 4) & 15u);
    } else if constexpr (FORMAT == SH_PACKED_Q1_0) {
        e->scale = half_at(b);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = b[2 + first / 8] >> i & 1 ? 1.0f : -1.0f;
    } else {                                                    /* INT8_128 */
        uint2 q = bytes_at<4>(b + 4 + first);
        e->scale = __uint_as_float(*(const unsigned *)b);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)(signed char)byte_of(q, i);
    }
}

/* Number i of a block of TQ1_0: a digit of base 3. */
static __device__ __forceinline__ float third_of(const unsigned char *b, int i)
{
    int digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
    unsigned q = b[i < 160 ? i % 32 : i < 240 ? 32 + i % 16 : 48 + i % 4];
    unsigned power = digit < 2 ? digit < 1 ? 1 : 3 : digit < 3 ? 9 : digit < 4 ? 27 : 81;
    return (float)((int)((q * power & 255u) * 3 >> 8) - 1);
}

/* Formats of 256. */
template <int FORMAT>
static __device__ __forceinline__ void eight_of_256(const unsigned char *b, int first, struct eight *e)
{
    int run = first / 32, part = first / 16;
    if constexpr (FORMAT == SH_PACKED_Q4_K || FORMAT == SH_PACKED_Q5_K) {
        enum { FIVE = FORMAT == SH_PACKED_Q5_K };
        uint2 pair = k_pair(b + 4, run), q = bytes_at<4>(b + (FIVE ? 48 : 16) + run / 2 * 32 + first % 32);
        uint2 high = FIVE ? bytes_at<4>(b + 16 + first % 32) : make_uint2(0, 0);
        e->scale = half_at(b) * (float)pair.x;
        e->less = half_at(b + 2) * (float)pair.y;
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)((byte_of(q, i) >> (run % 2 * 4) & 15u) | (byte_of(high, i) >> run & 1u) << 4);
    } else if constexpr (FORMAT == SH_PACKED_Q6_K) {
        int half = part / 8, quarter = part % 8 / 2, at = first % 32;
        uint2 low = bytes_at<2>(b + half * 64 + quarter % 2 * 32 + at), high = bytes_at<2>(b + 128 + half * 32 + at);
        e->scale = half_at(b + 208) * (float)(signed char)b[192 + part];
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)((int)((byte_of(low, i) >> (quarter / 2 * 4) & 15u) |
                                       (byte_of(high, i) >> (2 * quarter) & 3u) << 4) - 32);
    } else if constexpr (FORMAT == SH_PACKED_Q2_K) {
        uint2 q = bytes_at<4>(b + 16 + part / 8 * 32 + first % 32);
        e->scale = half_at(b + 80) * (float)(b[part] & 15);
        e->less = half_at(b + 82) * (float)(b[part] >> 4);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)(byte_of(q, i) >> (part % 8 / 2 * 2) & 3u);
    } else if constexpr (FORMAT == SH_PACKED_Q3_K) {
        const unsigned char *s = b + 96;
        uint2 q = bytes_at<2>(b + 32 + part / 8 * 32 + first % 32), high = bytes_at<2>(b + first % 32);
        int scale = (s[part % 8] >> (part / 8 * 4) & 15) | (s[8 + part % 4] >> (part / 4 * 2) & 3) << 4;
        e->scale = half_at(b + 108) * (float)(scale - 32);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)((int)((byte_of(q, i) >> (part % 8 / 2 * 2) & 3u) +
                                       4 * (byte_of(high, i) >> (part / 2) & 1u)) - 4);
    } else if constexpr (FORMAT == SH_PACKED_TQ2_0) {
        uint2 q = bytes_at<2>(b + part / 8 * 32 + first % 32);
        e->scale = half_at(b + 64);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = (float)((int)(byte_of(q, i) >> (part % 8 / 2 * 2) & 3u) - 1);
    } else if constexpr (FORMAT == SH_PACKED_TQ1_0) {
        e->scale = half_at(b + 52);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = third_of(b, first + i);
    } else {                                                    /* IQ4_XS */
        unsigned code[PACKED_EIGHT], high = (unsigned)(b[2] | b[3] << 8) >> (2 * run) & 3u;
        unsigned low = (unsigned)b[4 + run / 2] >> (4 * (run % 2)) & 15u;
        nibbles_at<4>(b + 8 + 16 * run, first % 32, code);
        e->scale = half_at(b) * (float)((int)(low | high << 4) - 32);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            e->code[i] = iq4_number(code[i]);
    }
}

/* Numbers 8 * unit and on of a row whose blocks begin at `row`; apart: the row's scales of MXFP4_APART. */
template <int FORMAT>
static __device__ __forceinline__ void eight_numbers(const unsigned char *row, const unsigned char *apart, int unit,
                                                     float *x)
{
    enum { UNITS = packing<FORMAT>::ELEMENTS / PACKED_EIGHT };
    const unsigned char *b = row + (size_t)(unit / UNITS) * packing<FORMAT>::BYTES;
    int first = unit % UNITS * PACKED_EIGHT;
    if constexpr (FORMAT == SH_PACKED_F16 || FORMAT == SH_PACKED_BF16) {
        uint4 four = *(const uint4 *)(b + 2 * first);
        if constexpr (FORMAT == SH_PACKED_F16)
            chunk_numbers<16>(four, x);
        else
            bf16_numbers(four, x);
    } else {
        struct eight e = {};
        if constexpr (FORMAT == SH_PACKED_E4M3_32 || FORMAT == SH_PACKED_E4M3_128 || FORMAT == SH_PACKED_E5M2_128)
            eight_of_floats<FORMAT>(b, first, &e);
        else if constexpr (packing<FORMAT>::ELEMENTS == 32)
            eight_of_32<FORMAT>(b, FORMAT == SH_PACKED_MXFP4_APART ? apart + unit / UNITS : NULL, first, &e);
        else if constexpr (FORMAT == SH_PACKED_NF4_64)
            eight_of_nf4(b, first, &e);
        else if constexpr (packing<FORMAT>::IS_POINTS)
            eight_of_points<FORMAT>(b, first / PACKED_EIGHT, &e.scale, e.code);
        else if constexpr (packing<FORMAT>::ELEMENTS == 128)
            eight_of_128<FORMAT>(b, first, &e);
        else
            eight_of_256<FORMAT>(b, first, &e);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            x[i] = e.scale * e.code[i] - e.less;
    }
}

#endif
