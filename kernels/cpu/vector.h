/* SPDX-License-Identifier: Apache-2.0 */
/* The vector type of the variant, and functions that the compiler can vectorise on any instruction set. */
#ifndef SH_KERNELS_CPU_VECTOR_H
#define SH_KERNELS_CPU_VECTOR_H

#include <math.h>
#include <string.h>

#include "kernels/backend.h"

/* CPU_FLOATS floats; loads and stores need no alignment. */
typedef float vec __attribute__((vector_size(4 * CPU_FLOATS), aligned(4), may_alias));

/* exp(x) for x <= 0 to 2 units in the last place; 0 below -87, where the result would be subnormal.
 * exp(x) = 2^n exp(r), |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to an integer and leaves n in the
 * low bits. Polynomial: Cephes' expf. */
static inline float exp_of_negative(float x)
{
    float shifted = x * 0x1.715476p0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
    float r = x - n * 0x1.63p-1f - n * -0x1.bd0106p-13f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * (r * r) + r + 1.0f;
    float scaled = sh_from_bits(sh_bits(y) + (sh_bits(shifted) << 23));
    return x < -87.0f ? 0.0f : scaled;
}

/* tanh(x) to 2 units in the last place. The polynomial for small x (Cephes' tanhf) keeps the digits that
 * 1 - exp(-2 x) would lose. */
static inline float tanh_of(float x)
{
    float size = fabsf(x), e = exp_of_negative(-2.0f * size), z = x * x;
    float y = -5.70498872745e-3f;
    y = y * z + 2.06390887954e-2f;
    y = y * z - 5.37397155531e-2f;
    y = y * z + 1.33314422036e-1f;
    y = y * z - 3.33332819422e-1f;
    float small = x + x * (z * y), large = copysignf((1.0f - e) / (1.0f + e), x);
    return size < 0.625f ? small : large;
}

/* 1 / (1 + exp(-x)) */
static inline float logistic(float x)
{
    float e = exp_of_negative(-fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* ln(1 + exp(x)) */
static inline float softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

/* y = act(x) of n numbers; y may be x. */
static inline void activate(float *y, const float *x, enum sh_act act, size_t n)
{
    switch (act) {
    case SH_ACT_RELU:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0 ? 0.0f : x[i];              /* NaN stays NaN */
        break;
    case SH_ACT_GELU:
        for (size_t i = 0; i < n; i++)
            y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
        break;
    case SH_ACT_GELU_TANH:                              /* (1 + tanh u) / 2 = logistic(2 u) */
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * logistic(1.5957691f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        break;
    case SH_ACT_SILU:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * logistic(x[i]);
        break;
    case SH_ACT_RELU2:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0 ? 0.0f : x[i] * x[i];
        break;
    case SH_ACT_SIGMOID:
        for (size_t i = 0; i < n; i++)
            y[i] = logistic(x[i]);
        break;
    case SH_ACT_NONE: case SH_ACT_CLIP: case SH_ACT_XIELU: case SH_ACT_CLAMPED: case SH_ACT_SOFTPLUS:
        memmove(y, x, n * sizeof *y);
    }
}

#endif
