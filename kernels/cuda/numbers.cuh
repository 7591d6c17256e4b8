/* SPDX-License-Identifier: Apache-2.0 */
/* Floats out of words of f32, of f16, and of codes of 8 or 4 bits, the first in the lowest bits. */
#ifndef SH_KERNELS_CUDA_NUMBERS_CUH
#define SH_KERNELS_CUDA_NUMBERS_CUH

#include "kernels/cuda/device.cuh"

static __device__ __forceinline__ float half_of(unsigned word, int upper)
{
    unsigned short bits = (unsigned short)(upper ? word >> 16 : word & 0xffffu);
    return __half2float(__ushort_as_half(bits));
}

/* A code becomes a float without a conversion, which has half the rate of arithmetic: in the lowest bits of 2^23 it is
 * a whole number, and what is left after 2^23 is taken away is exact. DIRECT codes of a word fit below 2^23 where they
 * lie, the others after one shift. So code i of a word comes out times 2^(BITS * (i % DIRECT)), which is taken out of
 * what it is multiplied by, or out of the sum (code_unit); a power of 2 costs no digit. */
template <int BITS> struct codes {
    enum { PER_WORD = 32 / BITS, DIRECT = BITS == 4 ? 5 : 2, MASK = (1 << BITS) - 1 };
};

/* 1 / what code i was multiplied by; i counts from the beginning of any word. */
template <int BITS> static __device__ __forceinline__ float code_unit(int i)
{
    int place = i % codes<BITS>::PER_WORD % codes<BITS>::DIRECT;
    return __uint_as_float((unsigned)(127 - BITS * place) << 23);
}

/* The 32 / BITS numbers of a word; codes times what code_unit takes out. */
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
            unsigned from = i < codes<BITS>::DIRECT ? word : word >> (codes<BITS>::DIRECT * BITS), whole;
            SH_AND_OR(whole, from, mask, two_to_23);
            x[i] = __uint_as_float(whole) - __uint_as_float(two_to_23);
        }
    }
}

/* Those of 16 bytes. */
template <int BITS> static __device__ __forceinline__ void chunk_numbers(uint4 four, float *x)
{
    enum { PER_WORD = 32 / BITS };
    numbers_of<BITS>(four.x, x);
    numbers_of<BITS>(four.y, x + PER_WORD);
    numbers_of<BITS>(four.z, x + 2 * PER_WORD);
    numbers_of<BITS>(four.w, x + 3 * PER_WORD);
}

/* Those of 16 bytes of bf16. */
static __device__ __forceinline__ void bf16_numbers(uint4 four, float *x)
{
    const unsigned word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(word[i] << 16);
        x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}

#endif
