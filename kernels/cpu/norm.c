/* SPDX-License-Identifier: Apache-2.0 */
/* Norms, a row at a time. */
#include <math.h>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "src/base/team.h"

static float mean_of(const float *x, int n)
{
    float sum = 0;                                      /* of vector lanes: as good as pairwise summing */
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / (float)n;
}

static float mean_square(const float *x, int n, float mean)
{
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return squares / (float)n;
}

/* A chunk is finished before it is written: `out` may be x. */
static void norm_row(void *arg, int row)
{
    const struct sh_norm *a = arg;
    size_t n = (size_t)a->x.cols, bytes = sh_type_bytes(a->out.type);
    const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
    char *out = (char *)a->out.at + (size_t)row * a->out.stride * bytes;
    float mean = a->kind == SH_NORM_LAYER ? mean_of(x, a->x.cols) : 0.0f;
    float inverse = 1.0f / sqrtf(mean_square(x, a->x.cols, mean) + a->eps);
    for (size_t at = 0; at < n; at += CHUNK) {
        float y[CHUNK];
        const float *old = (const float *)(const void *)(out + at * bytes);     /* used when it is f32 */
        size_t m = chunk_at(at, n);
        for (size_t i = 0; i < m; i++)
            y[i] = (x[at + i] - mean) * inverse;
        if (a->weight)
            for (size_t i = 0; i < m; i++)
                y[i] *= a->weight[at + i];
        if (a->bias)
            for (size_t i = 0; i < m; i++)
                y[i] += a->bias[at + i];
        if (a->add)
            for (size_t i = 0; i < m; i++)
                y[i] += old[i];
        store_floats(out + at * bytes, a->out.type, y, m);
    }
}

void CPU_NAME(cpu_norm)(const struct sh_norm *a, int n_threads)
{
    struct sh_norm copy = *a;
    sh_team_each(n_threads, a->x.rows, norm_row, &copy);
}
