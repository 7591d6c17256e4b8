/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values out of their formats into f32 registers. */
#ifndef SH_KERNELS_CUDA_SLOTS_UNPACK_CUH
#define SH_KERNELS_CUDA_SLOTS_UNPACK_CUH

#include "kernels/cuda/slots/slots.cuh"

static __device__ __forceinline__ uint4 key_load(const struct slots &s, size_t slot, int chunk)
{
    return *(const uint4 *)(s.k + slots_key_at(s, slot, chunk * SLOTS_CHUNK));
}

/* The numbers of 16 bytes of a slot's key. */
template <int BITS>
static __device__ __forceinline__ void key_chunk(const struct slots &s, size_t slot, int chunk, float *x)
{
    enum { N = 128 / BITS };
    chunk_numbers<BITS>(key_load(s, slot, chunk), x);
    if constexpr (BITS < 16) {
#pragma unroll
        for (int u = 0; u < N; u += SLOTS_UNIT) {
            if (chunk * N + u >= s.d)
                break;
            float2 scale = slots_scale(s, s.k_meta, slot, chunk * N + u);
#pragma unroll
            for (int i = 0; i < SLOTS_UNIT; i++)
                x[u + i] = x[u + i] * code_unit<BITS>(i) * scale.x + scale.y;
        }
    }
}

/* What N numbers of a value are made of. */
template <int BITS, int N> struct value_part {
    enum { WORDS = N * BITS / 32 };
    unsigned word[WORDS];
    float2 scale;                       /* of codes                                                */
};

/* Those of a slot from channel N * i on: nothing is done with them here, so that several are asked for before the
 * first is waited for. Where N > SLOTS_UNIT they lie at a multiple of their bytes, and codes have one scale. */
template <int BITS, int N>
static __device__ __forceinline__ void value_load(const struct slots &s, size_t slot, int i, value_part<BITS, N> &to)
{
    enum { WORDS = value_part<BITS, N>::WORDS };
    const char *at = s.v + slot * (size_t)(s.units * BITS) + (size_t)(i * (N / SLOTS_UNIT * BITS));
    if constexpr (WORDS == 1) {
        to.word[0] = *(const unsigned *)at;
    } else if constexpr (WORDS == 2) {
        uint2 two = *(const uint2 *)at;
        to.word[0] = two.x;
        to.word[1] = two.y;
    } else {
#pragma unroll
        for (int k = 0; k < WORDS / 4; k++) {
            uint4 four = ((const uint4 *)at)[k];
            to.word[4 * k] = four.x;
            to.word[4 * k + 1] = four.y;
            to.word[4 * k + 2] = four.z;
            to.word[4 * k + 3] = four.w;
        }
    }
    if constexpr (BITS < 16)
        to.scale = slots_scale(s, s.v_meta, slot, i * N);
}

/* As numbers_of has them. */
template <int BITS, int N> static __device__ __forceinline__ void value_codes(const value_part<BITS, N> &from, float *x)
{
#pragma unroll
    for (int i = 0; i < value_part<BITS, N>::WORDS; i++)
        numbers_of<BITS>(from.word[i], x + i * (32 / BITS));
}

template <int BITS, int N>
static __device__ __forceinline__ void value_numbers(const value_part<BITS, N> &from, float *x)
{
    value_codes(from, x);
    if constexpr (BITS < 16) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = x[i] * code_unit<BITS>(i) * from.scale.x + from.scale.y;
    }
}

#endif
