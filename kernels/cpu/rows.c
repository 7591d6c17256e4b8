/* SPDX-License-Identifier: Apache-2.0 */
/* Row-wise operations and conversions of the CPU backend, and the table of this variant. */
#include <math.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"

enum { PIECE = 1 << 16 };                               /* elements that one thread converts at a time */

static void norm(const struct sh_norm *a, int n_threads)
{
    int n = a->x.cols;
#pragma omp parallel for num_threads(n_threads)
    for (int row = 0; row < a->x.rows; row++) {
        const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
        float sum = 0, squares = 0;             /* of vector lanes: as good as pairwise summing */
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < n; i++)
            sum += x[i];
        float mean = sum / (float)n;
#pragma omp simd reduction(+ : squares)
        for (int i = 0; i < n; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        float inverse = 1.0f / sqrtf(squares / (float)n + a->eps);
        float *out = (float *)a->out.at + (size_t)row * a->out.stride;
        uint16_t *out16 = (uint16_t *)a->out.at + (size_t)row * a->out.stride;
        for (int i = 0; i < n; i++) {
            float y = (x[i] - mean) * inverse;
            y = a->weight ? y * a->weight[i] : y;
            y = a->bias ? y + a->bias[i] : y;
            if (a->out.type == SH_F32)
                out[i] = y;
            else
                out16[i] = sh_f32_to_bf16(y);
        }
    }
}

static void widen(float *to, const void *from, enum sh_type type, size_t n, int n_threads)
{
    const uint16_t *half = from;
    const float *whole = from;
#pragma omp parallel for num_threads(n_threads)
    for (size_t at = 0; at < n; at += PIECE) {
        size_t end = n - at < PIECE ? n : at + PIECE;
        if (type == SH_F32)
            for (size_t i = at; i < end; i++)
                to[i] = whole[i];
        else if (type == SH_F16)
            for (size_t i = at; i < end; i++)
                to[i] = sh_f16_to_f32(half[i]);
        else
            for (size_t i = at; i < end; i++)
                to[i] = sh_bf16_to_f32(half[i]);
    }
}

static void round_bf16(uint16_t *to, const void *from, enum sh_type type, size_t n, int n_threads)
{
    const uint16_t *half = from;
    const float *whole = from;
#pragma omp parallel for num_threads(n_threads)
    for (size_t at = 0; at < n; at += PIECE) {
        size_t end = n - at < PIECE ? n : at + PIECE;
        for (size_t i = at; i < end; i++)
            to[i] = type == SH_F32   ? sh_f32_to_bf16(whole[i])
                    : type == SH_F16 ? sh_f32_to_bf16(sh_f16_to_f32(half[i]))
                                     : half[i];
    }
}

#define CPU_TEXT_(x) #x
#define CPU_TEXT(x) CPU_TEXT_(x)

const struct cpu_kernels CPU_NAME(cpu_kernels) = {
    .name = CPU_TEXT(CPU_VARIANT),
    .attend = CPU_NAME(cpu_attend),
    .norm = norm,
    .widen = widen,
    .round_bf16 = round_bf16,
};
