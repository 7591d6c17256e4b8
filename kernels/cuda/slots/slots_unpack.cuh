/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values out of their formats into f32 registers: 16 bytes of a key, and units of 8 numbers of a value. */
#ifndef SH_KERNELS_CUDA_SLOTS_UNPACK_CUH
#define SH_KERNELS_CUDA_SLOTS_UNPACK_CUH

#include "kernels/cuda/slots/slots.cuh"

/* A code becomes a float without a conversion, which has half the rate of arithmetic: in the lowest bits of 2^23 a code
 * is a whole number, and what is left after 2^23 is taken away is exact. DIRECT codes of a word fit below 2^23 where they
 * lie, the others after one shift; so the code of channel i comes out times 2^(BITS * (i % DIRECT)), which whoever
 * multiplies by it takes out again once (code_unit): a power of 2 costs no digit. */
template <int BITS> struct codes {
    enum { PER_WORD = 32 / BITS, DIRECT = BITS == 4 ? 5 : 2, MASK = (1 << BITS) - 1 };
};

/* 1 / what the code of channel i was multiplied by. */
template <int BITS> static __device__ __forceinline__ float code_unit(int i)
{
    int place = i % codes<BITS>::PER_WORD % codes<BITS>::DIRECT;
    return __uint_as_float((unsigned)(127 - BITS * place) << 23);
}

/* The 32 / BITS numbers of a word; codes still are codes, times what code_unit takes out. */
template <int BITS> static __device__ __forceinline__ void numbers_of(unsigned word, float *x)
{
    if constexpr (BITS == 32) {
        x[0] = __uint_as_float(word);
    } else if constexpr (BITS == 16) {
        x[0] = half_of(word, 0);
        x[1] = half_of(word, 1);
    } else {
        const unsigned two_to_23 = 0x4b000000u;
#pragma unroll
        for (int i = 0; i < codes<BITS>::PER_WORD; i++) {
            unsigned mask = (unsigned)codes<BITS>::MASK << (i % codes<BITS>::DIRECT * BITS);
            unsigned from = i < codes<BITS>::DIRECT ? word : word >> (codes<BITS>::DIRECT * BITS);
            x[i] = __uint_as_float((from & mask) | two_to_23) - __uint_as_float(two_to_23);
        }
    }
}

template <int BITS> static __device__ __forceinline__ void chunk_numbers(uint4 four, float *x)
{
    enum { PER_WORD = 32 / BITS };
    numbers_of<BITS>(four.x, x);
    numbers_of<BITS>(four.y, x + PER_WORD);
    numbers_of<BITS>(four.z, x + 2 * PER_WORD);
    numbers_of<BITS>(four.w, x + 3 * PER_WORD);
}

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

/* As numbers_of has them. */
template <int BITS> static __device__ __forceinline__ void value_codes(const value_unit<BITS> &from, float *x)
{
#pragma unroll
    for (int i = 0; i < BITS / 4; i++)
        numbers_of<BITS>(from.word[i], x + i * (32 / BITS));
}

template <int BITS> static __device__ __forceinline__ void value_numbers(const value_unit<BITS> &from, float *x)
{
    value_codes<BITS>(from, x);
    if constexpr (BITS < 16) {
#pragma unroll
        for (int i = 0; i < SLOTS_UNIT; i++)
            x[i] = x[i] * code_unit<BITS>(i) * from.scale.x + from.scale.y;
    }
}

#endif
