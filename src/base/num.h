/* SPDX-License-Identifier: Apache-2.0 */
/* The number formats that weights and scores are kept in, and their exact conversions.
 * f16 is IEEE binary16, bf16 the upper half of an IEEE binary32; both round to nearest, ties to even. */
#ifndef SH_BASE_NUM_H
#define SH_BASE_NUM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum sh_type { SH_F32, SH_F16, SH_BF16 };

static inline size_t sh_type_bytes(enum sh_type type) { return type == SH_F32 ? 4 : 2; }

static inline const char *sh_type_name(enum sh_type type)
{
    return type == SH_F32 ? "f32" : type == SH_F16 ? "f16" : "bf16";
}

/* -1: no type has that name. */
static inline int sh_type_of(const char *name)
{
    for (int t = SH_F32; t <= SH_BF16; t++)
        if (!strcmp(sh_type_name((enum sh_type)t), name))
            return t;
    return -1;
}

static inline uint32_t sh_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float sh_from_bits(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

static inline float sh_bf16_to_f32(uint16_t h) { return sh_from_bits((uint32_t)h << 16); }

static inline uint16_t sh_f32_to_bf16(float x)
{
    uint32_t u = sh_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);             /* NaN stays NaN */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* Branch-free so that loops over it vectorise: the multiplication rescales the exponent and also
 * normalises subnormals. */
static inline float sh_f16_to_f32(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
    float x = sh_from_bits(magnitude) * 0x1p112f;
    uint32_t u = (h & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : sh_bits(x);
    return sh_from_bits(u | (uint32_t)(h & 0x8000u) << 16);
}

/* Twice the number of a 4-bit float E2M1 (OCP Microscaling formats 1.0), which is whole. */
static inline float sh_fp4_twice(unsigned code)
{
    static const float twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12};
    return twice[code];
}

/* Half the scale of a byte E8M0, 2^(e - 127): within the range of f32 for every byte. */
static inline float sh_e8m0_half(unsigned char e)
{
    return sh_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

static inline uint16_t sh_f32_to_f16(float x)
{
    uint32_t u = sh_bits(x), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u >= 0x47800000u)                               /* 65536 and up, infinity, NaN */
        return (uint16_t)(sign | (u > 0x7f800000u ? 0x7e00u : 0x7c00u));
    if (u < 0x38800000u)                                /* subnormal: let the adder round it */
        return (uint16_t)(sign | (sh_bits(sh_from_bits(u) + 0.5f) - 0x3f000000u));
    u += 0xfffu + (u >> 13 & 1);
    return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}

/* alpha is a double, scores are floats: x > alpha exactly when x > sh_round_down(alpha), and
 * x < alpha exactly when x < sh_round_up(alpha). Lets threshold tests run in float. */
static inline float sh_round_down(double alpha)
{
    float f = (float)alpha;
    return (double)f > alpha ? nextafterf(f, -INFINITY) : f;
}

static inline float sh_round_up(double alpha)
{
    float f = (float)alpha;
    return (double)f < alpha ? nextafterf(f, INFINITY) : f;
}

#endif
