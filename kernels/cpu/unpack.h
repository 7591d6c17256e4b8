/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of packed weights (kernels/packed.h) as codes of 8 bits and scales: x = scale * code - less. Runs are 32
 * numbers. The format is a constant wherever these functions are inlined. Scales and codes are few bits, so that
 * scale * code is exact in f32, and x the same number as src/model unpacks. */
#ifndef SH_KERNELS_CPU_UNPACK_H
#define SH_KERNELS_CPU_UNPACK_H

#include <string.h>

#include "kernels/cpu/floats.h"
#include "kernels/packed.h"

#pragma GCC diagnostic ignored "-Wpsabi"         /* vectors that are wider than the variant's: all is inlined */

#define UNPACK static inline __attribute__((always_inline))

enum { RUN = 32, MOST_SPANS = 16, MOST_RUNS = 8 };

typedef uint16_t pairs32 __attribute__((vector_size(32), aligned(1), may_alias));   /* 32 bytes, shifted in pairs */
typedef uint16_t pairs16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int8_t bytes32 __attribute__((vector_size(32), aligned(1), may_alias));

struct block_shape {
    int elements, bytes, span, has_less;
};

UNPACK struct block_shape shape_of(enum sh_packing format)
{
    static const struct block_shape shapes[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {elements, bytes, span, less},
        SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
    };
    return shapes[format];
}

UNPACK float half_at(const unsigned char *at)
{
    uint16_t h = (uint16_t)(at[0] | at[1] << 8);
#ifdef __F16C__
    return _cvtsh_ss(h);
#else
    return sh_f16_to_f32(h);
#endif
}

UNPACK uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- scales ---- */

/* Eight pairs of 6 bits: of the first four, each has a byte; of the others four bits are there and two on top of an
 * earlier byte. */
UNPACK void pairs_of_6(const unsigned char *b, float *scale, float *less)
{
    uint32_t s[3], six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    unsigned char low[8], high[8];
    float d = half_at(b), m = half_at(b + 2);
    memcpy(s, b + 4, sizeof s);
    memcpy(low, &(uint32_t){s[0] & six}, 4);
    memcpy(low + 4, &(uint32_t){(s[2] & four) | (s[0] >> 2 & two)}, 4);
    memcpy(high, &(uint32_t){s[1] & six}, 4);
    memcpy(high + 4, &(uint32_t){(s[2] >> 4 & four) | (s[1] >> 2 & two)}, 4);
    for (int j = 0; j < 8; j++) {
        scale[j] = d * (float)low[j];
        less[j] = m * (float)high[j];
    }
}

/* Q3_K's sixteen: four low bits in eight bytes, two high ones in the last four. */
UNPACK void sixteen_of_6(const unsigned char *b, float *scale)
{
    const unsigned char *s = b + 96;
    float d = half_at(b + 108);
    for (int i = 0; i < 16; i++)
        scale[i] = d * (float)(((s[i % 8] >> i / 8 * 4 & 15) | (s[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32);
}

UNPACK void scales_of(enum sh_packing format, const unsigned char *b, float *scale, float *less)
{
    switch (format) {
    case SH_PACKED_Q8_0: case SH_PACKED_Q4_0: case SH_PACKED_Q5_0: case SH_PACKED_IQ4_NL:
        scale[0] = half_at(b);
        break;
    case SH_PACKED_Q4_1: case SH_PACKED_Q5_1:
        scale[0] = half_at(b);
        less[0] = -half_at(b + 2);
        break;
    case SH_PACKED_MXFP4:
        scale[0] = sh_e8m0_half(b[0]);
        break;
    case SH_PACKED_Q4_K: case SH_PACKED_Q5_K:
        pairs_of_6(b, scale, less);
        break;
    case SH_PACKED_Q6_K:
        for (int i = 0; i < 16; i++)
            scale[i] = half_at(b + 208) * (float)(int8_t)b[192 + i];
        break;
    case SH_PACKED_Q2_K:
        for (int i = 0; i < 16; i++) {
            scale[i] = half_at(b + 80) * (float)(b[i] & 15);
            less[i] = half_at(b + 82) * (float)(b[i] >> 4);
        }
        break;
    case SH_PACKED_Q3_K:
        sixteen_of_6(b, scale);
        break;
    case SH_PACKED_IQ4_XS:
        for (int i = 0; i < 8; i++) {
            int high = (b[2 + i / 4] >> i % 4 * 2 & 3) << 4;
            scale[i] = half_at(b) * (float)(((b[4 + i / 2] >> i % 2 * 4 & 15) | high) - 32);
        }
        break;
    case SH_PACKED_OTHER: case SH_N_PACKING:
        break;
    }
}

/* ---- codes ---- */

/* 32 nibbles of 16 bytes: first the low ones. */
UNPACK bytes32 nibbles(const unsigned char *q)
{
    pairs16 v = *(const pairs16 *)(const void *)q;
#ifdef __AVX2__
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)v), (__m128i)(v >> 4), 1);
    return (bytes32)_mm256_and_si256(both, _mm256_set1_epi8(15));
#else
    pairs16 low = v & 0x0f0f, high = v >> 4 & 0x0f0f;
    bytes32 all;
    memcpy(&all, &low, 16);
    memcpy((char *)&all + 16, &high, 16);
    return all;
#endif
}

/* The same as numbers of a table. */
UNPACK void looked_up(const int8_t *table, const unsigned char *q, int8_t *to)
{
#ifdef __AVX2__
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_shuffle_epi8(all, (__m256i)nibbles(q)));
#else
    for (int i = 0; i < 16; i++) {
        to[i] = table[q[i] & 15];
        to[i + 16] = table[q[i] >> 4];
    }
#endif
}

/* 16 where a bit is set. */
UNPACK bytes32 fifths(uint32_t bits)
{
#ifdef __AVX2__
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte), bit);
    return (bytes32)_mm256_and_si256(_mm256_cmpeq_epi8(v, bit), _mm256_set1_epi8(16));
#else
    bytes32 all;
    for (int i = 0; i < 32; i++)
        all[i] = (int8_t)((bits >> i & 1) << 4);
    return all;
#endif
}

/* Bits [shift, …) of 32 bytes under a mask of each. */
UNPACK bytes32 bits_of(const unsigned char *at, int shift, unsigned mask)
{
    return (bytes32)(*(const pairs32 *)(const void *)at >> (uint16_t)shift & (uint16_t)(mask * 0x0101));
}

UNPACK bytes32 raised(bytes32 bits, int by)
{
    return (bytes32)((pairs32)bits << (uint16_t)by);
}

UNPACK void put(int8_t *to, bytes32 codes)
{
    *(bytes32 *)(void *)to = codes;
}

/* The codes of a run, where they are or in `own`. */
UNPACK const int8_t *codes_of(enum sh_packing format, const unsigned char *b, int run, int8_t *own)
{
    static const int8_t iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int8_t fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    int half = run / 4, quarter = run % 4;
    switch (format) {
    case SH_PACKED_Q8_0: return (const int8_t *)b + 2;
    case SH_PACKED_Q4_0: put(own, nibbles(b + 2) - 8); break;
    case SH_PACKED_Q4_1: put(own, nibbles(b + 4)); break;
    case SH_PACKED_Q5_0: put(own, (nibbles(b + 6) | fifths(word_at(b + 2))) - 16); break;
    case SH_PACKED_Q5_1: put(own, nibbles(b + 8) | fifths(word_at(b + 4))); break;
    case SH_PACKED_IQ4_NL: looked_up(iq4, b + 2, own); break;
    case SH_PACKED_MXFP4: looked_up(fp4, b + 1, own); break;
    case SH_PACKED_Q4_K: put(own, bits_of(b + 16 + run / 2 * 32, run % 2 * 4, 15)); break;
    case SH_PACKED_Q5_K:
        put(own, bits_of(b + 48 + run / 2 * 32, run % 2 * 4, 15) | raised(bits_of(b + 16, run, 1), 4));
        break;
    case SH_PACKED_Q6_K:
        put(own, (bits_of(b + half * 64 + run % 2 * 32, quarter / 2 * 4, 15) |
                  raised(bits_of(b + 128 + half * 32, 2 * quarter, 3), 4)) - 32);
        break;
    case SH_PACKED_Q2_K: put(own, bits_of(b + 16 + half * 32, 2 * quarter, 3)); break;
    case SH_PACKED_Q3_K:
        put(own, (bits_of(b + 32 + half * 32, 2 * quarter, 3) | raised(bits_of(b, run, 1), 2)) - 4);
        break;
    case SH_PACKED_IQ4_XS: looked_up(iq4, b + 8 + 16 * run, own); break;
    case SH_PACKED_OTHER: case SH_N_PACKING: break;
    }
    return own;
}

/* CPU_FLOATS of them as numbers. */
UNPACK vec widened_codes(const int8_t *code)
{
#if defined __AVX512F__
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)code)));
#elif defined __AVX2__
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)code)));
#else
    vec w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = (float)code[k];
    return w;
#endif
}

/* Numbers i to i + CPU_FLOATS of a run of codes; scale and less: of the block's spans. */
UNPACK vec numbers_of(enum sh_packing format, const int8_t *code, int run, int i, const float *scale,
                      const float *less)
{
    int span = (run * RUN + i) / shape_of(format).span;
    vec w = widened_codes(code + i) * scale[span];
    if (shape_of(format).has_less)
        w -= less[span];
    return w;
}

#endif
