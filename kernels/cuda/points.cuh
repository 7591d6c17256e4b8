/* SPDX-License-Identifier: Apache-2.0 */
/* Eight neighbours out of a block of lattice points (kernels/packed.h: IQ1 to IQ3), as packed.cuh has those of other
 * formats. Tables are in the device's memory, from where caches take what is used. */
#ifndef SH_KERNELS_CUDA_POINTS_CUH
#define SH_KERNELS_CUDA_POINTS_CUH

#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/packing.cuh"
#include "src/base/iq_points.h"

#define WORD(point) point,
static __device__ const unsigned short iq1_points[SH_N_IQ1] = {SH_IQ1_POINTS(WORD)};
static __device__ const unsigned short iq2_xxs_points[SH_N_IQ2_XXS] = {SH_IQ2_XXS_POINTS(WORD)};
static __device__ const unsigned short iq2_xs_points[SH_N_IQ2_XS] = {SH_IQ2_XS_POINTS(WORD)};
static __device__ const unsigned short iq2_s_points[SH_N_IQ2_S] = {SH_IQ2_S_POINTS(WORD)};
static __device__ const unsigned short iq3_xxs_points[SH_N_IQ3_XXS] = {SH_IQ3_XXS_POINTS(WORD)};
static __device__ const unsigned short iq3_s_points[SH_N_IQ3_S] = {SH_IQ3_S_POINTS(WORD)};
#undef WORD

static __device__ __forceinline__ unsigned pair_at(const unsigned char *at)
{
    return *(const unsigned short *)at;
}

static __device__ __forceinline__ float half_at(const unsigned char *at)
{
    return half_of(pair_at(at), 0);
}

/* Seven signs and the eighth, which makes their number even. */
static __device__ __forceinline__ unsigned eight_signs(unsigned seven)
{
    return (seven & 127u) | ((unsigned)__popc(seven & 127u) & 1u) << 7;
}

/* The small scale s of span `span`; the format's scale is 2 s + 1 times this. */
template <int FORMAT> static __device__ __forceinline__ unsigned small_scale(const unsigned char *b, int span)
{
    if constexpr (FORMAT == SH_PACKED_IQ1_S)
        return b[35 + 2 * span] >> 4 & 7u;
    else if constexpr (FORMAT == SH_PACKED_IQ1_M)
        return pair_at(b + 48 + span / 4 * 2) >> 3 * (span % 4) & 7u;
    else if constexpr (FORMAT == SH_PACKED_IQ2_XXS)
        return b[9 + 8 * span] >> 4;
    else if constexpr (FORMAT == SH_PACKED_IQ3_XXS)
        return b[69 + 4 * span] >> 4;
    else
        return (unsigned)b[(FORMAT == SH_PACKED_IQ2_XS ? 66 : FORMAT == SH_PACKED_IQ2_S ? 74 : 106) + span / 2] >>
               4 * (span % 2) & 15u;
}

/* Coordinates of eight: two bits each, or (IQ3) of two points three bits each from bits 0 and 12 on. */
template <int FORMAT> static __device__ __forceinline__ unsigned eight_coordinates(const unsigned char *b, int i)
{
    if constexpr (FORMAT == SH_PACKED_IQ1_S)
        return iq1_points[b[2 + i] | (pair_at(b + 34 + i / 4 * 2) >> 3 * (i % 4) & 7u) << 8];
    else if constexpr (FORMAT == SH_PACKED_IQ1_M)
        return iq1_points[b[i] | ((unsigned)b[32 + i / 2] >> 4 * (i % 2) & 7u) << 8];
    else if constexpr (FORMAT == SH_PACKED_IQ2_XXS)
        return iq2_xxs_points[b[2 + i / 4 * 8 + i % 4]];
    else if constexpr (FORMAT == SH_PACKED_IQ2_XS)
        return iq2_xs_points[pair_at(b + 2 + 2 * i) & 511u];
    else if constexpr (FORMAT == SH_PACKED_IQ2_S)
        return iq2_s_points[b[2 + i] | ((unsigned)b[66 + i / 4] >> 2 * (i % 4) & 3u) << 8];
    else if constexpr (FORMAT == SH_PACKED_IQ3_XXS)
        return iq3_xxs_points[b[2 + 2 * i]] | (unsigned)iq3_xxs_points[b[3 + 2 * i]] << 12;
    else {
        unsigned high = (unsigned)b[66 + i / 4] >> 2 * (i % 4);
        return iq3_s_points[b[2 + 2 * i] | (high & 1u) << 8] |
               (unsigned)iq3_s_points[b[3 + 2 * i] | (high & 2u) << 7] << 12;
    }
}

/* A bit is set where a number is less than 0; of IQ1, where the numbers are shifted down. */
template <int FORMAT> static __device__ __forceinline__ unsigned eight_signs_of(const unsigned char *b, int i)
{
    if constexpr (FORMAT == SH_PACKED_IQ1_S)
        return b[35 + i / 4 * 2] & 128u;
    else if constexpr (FORMAT == SH_PACKED_IQ1_M)
        return (unsigned)b[32 + i / 2] >> 4 * (i % 2) & 8u;
    else if constexpr (FORMAT == SH_PACKED_IQ2_XS)
        return eight_signs(pair_at(b + 2 + 2 * i) >> 9);
    else if constexpr (FORMAT == SH_PACKED_IQ2_S || FORMAT == SH_PACKED_IQ3_S)
        return b[(FORMAT == SH_PACKED_IQ2_S ? 34 : 74) + i];
    else {
        const unsigned char *at = FORMAT == SH_PACKED_IQ2_XXS ? b + 6 + i / 4 * 8 : b + 66 + i / 4 * 4;
        return eight_signs((pair_at(at) | pair_at(at + 2) << 16) >> 7 * (i % 4));
    }
}

template <int FORMAT> static __device__ __forceinline__ float point_number(unsigned coordinates, int k)
{
    if constexpr (FORMAT == SH_PACKED_IQ3_XXS || FORMAT == SH_PACKED_IQ3_S) {
        unsigned c = coordinates >> 3 * k & 7u;
        return FORMAT == SH_PACKED_IQ3_S ? (float)(1 + 2 * c) : (float)(c == 7 ? 62 : 4 + 8 * c);
    } else {
        unsigned c = coordinates >> 2 * k & 3u;
        return c ? (float)(7 + 18 * c) : 8.0f;
    }
}

/* Numbers 8 i to 8 i + 7 of the block as scale * code. */
template <int FORMAT>
static __device__ __forceinline__ void eight_of_points(const unsigned char *b, int i, float *scale, float *code)
{
    enum { IS_TERNARY = FORMAT == SH_PACKED_IQ1_S || FORMAT == SH_PACKED_IQ1_M, SPAN = packing<FORMAT>::SPAN };
    unsigned coordinates = eight_coordinates<FORMAT>(b, i), signs = eight_signs_of<FORMAT>(b, i);
    float d, unit = FORMAT == SH_PACKED_IQ3_S ? 1.0f : FORMAT == SH_PACKED_IQ3_XXS ? 0.25f : 0.125f;
    if constexpr (FORMAT == SH_PACKED_IQ1_M)
        d = half_of(b[49] >> 4 | (b[51] & 240u) | (unsigned)(b[53] >> 4) << 8 | (b[55] & 240u) << 8, 0);
    else
        d = half_at(b);
    *scale = d * unit * (float)(2 * small_scale<FORMAT>(b, 8 * i / SPAN) + 1);
#pragma unroll
    for (int k = 0; k < 8; k++)
        if constexpr (IS_TERNARY)
            code[k] = (float)(8 * ((int)(coordinates >> 2 * k & 3u) - 1) + (signs ? -1 : 1));
        else
            code[k] = signs >> k & 1u ? -point_number<FORMAT>(coordinates, k) : point_number<FORMAT>(coordinates, k);
}

#endif
