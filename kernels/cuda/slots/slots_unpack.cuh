/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values out of their formats into f32 registers: 16 bytes of a key, and units of 8 numbers of a value. */
#ifndef SH_KERNELS_CUDA_SLOTS_UNPACK_CUH
#define SH_KERNELS_CUDA_SLOTS_UNPACK_CUH

#include "kernels/cuda/slots/slots.cuh"

static __device__ __forceinline__ float half_of(unsigned word, int upper)
{
    unsigned short bits = (unsigned short)(upper ? word >> 16 : word & 0xffffu);
    return __half2float(__ushort_as_half(bits));
}

/* The 32 / BITS numbers of a word; codes still are codes. */
template <int BITS> static __device__ __forceinline__ void numbers_of(unsigned word, float *x)
{
    if constexpr (BITS == 32) {
        x[0] = __uint_as_float(word);
    } else if constexpr (BITS == 16) {
        x[0] = half_of(word, 0);
        x[1] = half_of(word, 1);
    } else {
#pragma unroll
        for (int i = 0; i < 32 / BITS; i++)
            x[i] = (float)(word >> (i * BITS) & ((1u << BITS) - 1));
    }
}

/* Numbers of a slot from channel c on: 16 bytes of a key. */
template <int BITS>
static __device__ __forceinline__ void key_chunk(const struct slots &s, size_t slot, int chunk, float *x)
{
    enum { PER_WORD = 32 / BITS, N = 4 * PER_WORD };
    uint4 four = *(const uint4 *)(s.k + slots_key_at(s, slot, chunk * SLOTS_CHUNK));
    numbers_of<BITS>(four.x, x);
    numbers_of<BITS>(four.y, x + PER_WORD);
    numbers_of<BITS>(four.z, x + 2 * PER_WORD);
    numbers_of<BITS>(four.w, x + 3 * PER_WORD);
    if constexpr (BITS < 16) {
#pragma unroll
        for (int u = 0; u < N; u += SLOTS_UNIT) {
            if (chunk * N + u >= s.d)
                break;
            float2 scale = slots_scale(s, s.k_meta, slot, chunk * N + u);
#pragma unroll
            for (int i = 0; i < SLOTS_UNIT; i++)
                x[u + i] = x[u + i] * scale.x + scale.y;
        }
    }
}

/* What 8 numbers of a value are made of. */
template <int BITS> struct value_unit {
    unsigned word[BITS / 4];
    float2 scale;                       /* of codes                                                */
};

/* Those of a slot from channel 8 * unit on: nothing is done with them here, so that several are asked for before
 * the first is waited for. */
template <int BITS>
static __device__ __forceinline__ void value_load(const struct slots &s, size_t slot, int unit, value_unit<BITS> &to)
{
    const char *at = s.v + (slot * (size_t)s.units + (size_t)unit) * BITS;
    if constexpr (BITS == 4) {
        to.word[0] = *(const unsigned *)at;
    } else if constexpr (BITS == 8) {
        uint2 two = *(const uint2 *)at;
        to.word[0] = two.x;
        to.word[1] = two.y;
    } else {
#pragma unroll
        for (int i = 0; i < BITS / 16; i++) {
            uint4 four = ((const uint4 *)at)[i];
            to.word[4 * i] = four.x;
            to.word[4 * i + 1] = four.y;
            to.word[4 * i + 2] = four.z;
            to.word[4 * i + 3] = four.w;
        }
    }
    if constexpr (BITS < 16)
        to.scale = slots_scale(s, s.v_meta, slot, unit * SLOTS_UNIT);
}

template <int BITS> static __device__ __forceinline__ void value_numbers(const value_unit<BITS> &from, float *x)
{
#pragma unroll
    for (int i = 0; i < BITS / 4; i++)
        numbers_of<BITS>(from.word[i], x + i * (32 / BITS));
    if constexpr (BITS < 16) {
#pragma unroll
        for (int i = 0; i < SLOTS_UNIT; i++)
            x[i] = x[i] * from.scale.x + from.scale.y;
    }
}

#endif
