/* SPDX-License-Identifier: Apache-2.0 */
/* A weight matrix [rows, cols] kept as codes of 8 or 4 bits, for products that read the numbers back
 * piece by piece. All backends use what is here, so that they keep the same numbers bit by bit.
 *
 * A group is 64 consecutive inputs (columns) of one output (row); the last one of a row may be shorter.
 * With min and max over the group, in f32:
 *
 *     scale = f16((max - min) / top),  least = f16(min),  top = 2^bits - 1
 *     code  = round((x - least) / scale), ties to even, kept within 0 .. top; 0 when scale is 0
 *     x'    = code * scale + least
 *
 * Products of many rows round x' to the type of their operands; those of a few rows may take it as it is. code * scale
 * is exact in f32, so that x' does not depend on whether it is fused with the sum. A group takes 64 * bits + 32 bits:
 * 4.5 bits a weight, or 8.5. Numbers beyond f16's largest (65504) are not finite afterwards, which the attention that
 * follows reports.
 *
 * Why a scale and a least value, and not a scale alone: root mean square of x' - x over that of x, on
 * normal numbers, and in brackets on the matrices of a small trained transformer:
 *
 *                                                 bits    4 bits              8 bits
 *     scale and least, groups of 64          4.5, 8.5     0.0897 (0.0907)     0.00528 (0.00533)
 *     scale alone, groups of 64            4.25, 8.25     0.0950 (0.0963)     0.00590 (0.00597)
 *     scale alone, groups of 32              4.5, 8.5     0.0860 (0.0865)     0.00532 (0.00534)
 *
 * So in groups of 64 the least value, a sixteenth of what 4-bit codes take, buys 6 % and 11 % of the
 * error; in groups of 32 it would be spent a little better at 4 bits and a little worse at 8.
 * ("Scale alone" has the number of largest magnitude at the code furthest from 0.)
 *
 * Memory: codes [rows][groups][8 * bits] bytes, every group of a row at its full size, of 4-bit codes
 * the first in the low half of its byte; then [rows][groups] pairs of f16, scale and least. */
#ifndef SH_KERNELS_WEIGHT_BITS_H
#define SH_KERNELS_WEIGHT_BITS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define SH_CODE_FN static __host__ __device__ __forceinline__
#else
#define SH_CODE_FN static inline
#endif

enum { SH_CODE_GROUP = 64 };

/* Bits that a weight can be kept in; 16: no codes, as the type of its operands. */
SH_CODE_FN int sh_code_bits_fit(int bits)
{
    return bits == 16 || bits == 8 || bits == 4;
}

SH_CODE_FN size_t sh_code_groups(int cols)              /* of a row                               */
{
    return ((size_t)cols + SH_CODE_GROUP - 1) / SH_CODE_GROUP;
}

SH_CODE_FN size_t sh_code_group_bytes(int bits)         /* of its codes                           */
{
    return SH_CODE_GROUP / 8 * (size_t)bits;
}

/* Where the pairs of scale and least value begin. */
SH_CODE_FN size_t sh_code_scales_at(int rows, int cols, int bits)
{
    return (size_t)rows * sh_code_groups(cols) * sh_code_group_bytes(bits);
}

/* In all. */
SH_CODE_FN size_t sh_code_bytes(int rows, int cols, int bits)
{
    return (size_t)rows * sh_code_groups(cols) * (sh_code_group_bytes(bits) + 2 * sizeof(uint16_t));
}

/* The largest code of a group: where all numbers are the same there is only code 0. */
SH_CODE_FN float sh_code_top(int bits, float scale)
{
    return scale > 0 ? (float)((1 << bits) - 1) : 0;
}

/* Adding 1.5 * 2^23 rounds to an integer, ties to even, on every machine and in every vector. */
SH_CODE_FN unsigned sh_code(float x, float scale, float least, float top)
{
    float v = (x - least) / scale;
    v = v > 0 ? v : 0;
    v = v < top ? v : top;
    return (unsigned)(int)((v + 0x1.8p23f) - 0x1.8p23f);
}

SH_CODE_FN float sh_code_value(unsigned code, float scale, float least)
{
    return (float)code * scale + least;
}

#endif
