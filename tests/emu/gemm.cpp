/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product, plainly: operands widened to f32, products summed in double, the result rounded to
 * f32 and then to the type of c. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "tests/emu/blas.h"

namespace emu {

size_t type_bytes(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

size_t matrix_bytes(const Operand &o, size_t rows, size_t cols)
{
    return rows && cols ? ((cols - 1) * o.lead + rows) * type_bytes(o.type) : 0;
}

static float load(const Operand &o, const char *at, size_t i)
{
    if (o.type == CUDA_R_32F)
        return ((const float *)(const void *)at)[i];
    uint16_t bits = ((const uint16_t *)(const void *)at)[i];
    return o.type == CUDA_R_16F ? sh_f16_to_f32(bits) : sh_bf16_to_f32(bits);
}

static void store(const Operand &o, char *at, size_t i, float x)
{
    if (o.type == CUDA_R_32F)
        ((float *)(void *)at)[i] = x;
    else
        ((uint16_t *)(void *)at)[i] = o.type == CUDA_R_16F ? sh_f32_to_f16(x) : sh_f32_to_bf16(x);
}

/* op(matrix), [rows, cols], as f32 in columns. */
static void widen(const Operand &o, const char *at, size_t rows, size_t cols, std::vector<float> &out)
{
    out.resize(rows * cols);
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            out[j * rows + i] = load(o, at, o.is_turned ? i * o.lead + j : j * o.lead + i);
}

static char *matrix_of(const Operand &o, size_t batch)
{
    return o.at + (long long)batch * o.stride * (long long)type_bytes(o.type);
}

/* One column of c: sums over k columns of a. */
static void add_column(double *sum, const float *a, const float *b, size_t m, size_t k)
{
    for (size_t l = 0; l < k; l++) {
        double x = b[l];
        const float *from = a + l * m;
        for (size_t i = 0; i < m; i++)
            sum[i] += x * (double)from[i];
    }
}

void run_gemm(const Gemm &g)
{
    std::vector<float> a, b;
    std::vector<double> sum(g.m);
    for (size_t batch = 0; batch < g.batches; batch++) {
        widen(g.a, matrix_of(g.a, batch), g.m, g.k, a);
        widen(g.b, matrix_of(g.b, batch), g.k, g.n, b);
        char *c = matrix_of(g.c, batch);
        for (size_t j = 0; j < g.n; j++) {
            std::fill(sum.begin(), sum.end(), 0.0);
            add_column(sum.data(), a.data(), b.data() + j * g.k, g.m, g.k);
            for (size_t i = 0; i < g.m; i++) {
                size_t at = j * g.c.lead + i;
                double x = (double)g.alpha * sum[i];
                x += g.beta != 0 ? (double)g.beta * (double)load(g.c, c, at) : 0;       /* beta 0: c is not read */
                store(g.c, c, at, (float)x);
            }
        }
    }
}

}
