/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the blocks of 16 rows as lanes: lane k has that of row k. */
#ifndef SH_KERNELS_CPU_ROW_WORDS_H
#define SH_KERNELS_CPU_ROW_WORDS_H

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/unpack.h"

#ifdef __AVX2__

enum { WORDS = 4, PIECE = 4 * WORDS };  /* words and bytes of a piece of a block: rows are turned piece by piece */

#ifdef __AVX512F__

/* Pieces of 16 bytes, from byte b of each output's blocks: word[4 * piece + i] = their words i. */
UNPACK void turned(const struct block_at *at, size_t b, int pieces, lane_ints *word)
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

#else

/* The same. */
UNPACK void turned(const struct block_at *at, size_t b, int pieces, lane_ints *word)
{
#pragma GCC unroll 16
    for (int p = 0; p < pieces; p++, b += PIECE, word += WORDS)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            __m256i from[4], pair[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                __m128i part[2];
                for (int j = 0; j < 2; j++)
                    part[j] = _mm_loadu_si128((const __m128i *)(const void *)(at[8 * half + 4 * j + k].b + b));
                from[k] = _mm256_set_m128i(part[1], part[0]);
            }
            pair[0] = _mm256_unpacklo_epi32(from[0], from[1]);
            pair[1] = _mm256_unpackhi_epi32(from[0], from[1]);
            pair[2] = _mm256_unpacklo_epi32(from[2], from[3]);
            pair[3] = _mm256_unpackhi_epi32(from[2], from[3]);
            word[0].v[half] = _mm256_unpacklo_epi64(pair[0], pair[2]);
            word[1].v[half] = _mm256_unpackhi_epi64(pair[0], pair[2]);
            word[2].v[half] = _mm256_unpacklo_epi64(pair[1], pair[3]);
            word[3].v[half] = _mm256_unpackhi_epi64(pair[1], pair[3]);
        }
}

#endif

typedef int16_t short_at __attribute__((aligned(1), may_alias));

/* Two bytes of each of 16 rows: on their own they take fewer shuffles than turned. */
UNPACK __m256i halves_of_rows(const struct block_at *at, size_t b)
{
    __m128i half[2];
#define HALF(k) (*(const short_at *)(const void *)(at[k].b + b))
    for (int i = 0; i < 2; i++, at += 8)
        half[i] = _mm_setr_epi16(HALF(0), HALF(1), HALF(2), HALF(3), HALF(4), HALF(5), HALF(6), HALF(7));
#undef HALF
    return _mm256_set_m128i(half[1], half[0]);
}

#endif
#endif
