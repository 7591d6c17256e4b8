/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of blocks of packed weights: what unpack.h and unpack_points.h read them with. */
#ifndef SH_KERNELS_CPU_PACKED_BYTES_H
#define SH_KERNELS_CPU_PACKED_BYTES_H

#include <string.h>

#include "kernels/cpu/floats.h"
#include "kernels/packed.h"

#pragma GCC diagnostic ignored "-Wpsabi"         /* vectors that are wider than the variant's: all is inlined */

#define UNPACK static inline __attribute__((always_inline))

enum { RUN = 32, MOST_SPANS = 16, MOST_RUNS = 8 };

typedef uint16_t pairs32 __attribute__((vector_size(32), aligned(1), may_alias));   /* 32 bytes, shifted in pairs */
typedef uint16_t pairs16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int8_t bytes32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * CPU_FLOATS)));

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

/* -1 where a bit is set. */
UNPACK bytes32 set_bytes(uint32_t bits)
{
#ifdef __AVX2__
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte), bit);
    return (bytes32)_mm256_cmpeq_epi8(v, bit);
#else
    bytes32 all;
    for (int i = 0; i < 32; i++)
        all[i] = (int8_t)-(bits >> i & 1);
    return all;
#endif
}

#endif
