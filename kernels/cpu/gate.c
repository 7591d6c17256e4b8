/* SPDX-License-Identifier: Apache-2.0 */
/* out = act(gate) * up, a chunk at a time. */
#include <math.h>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"

static void activate(float *restrict y, const float *restrict x, enum sh_act act, size_t n)
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
    case SH_ACT_NONE:
        memcpy(y, x, n * sizeof *y);
    }
}

void CPU_NAME(cpu_gate)(const struct sh_gate *a, int n_threads)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols, bytes = sh_type_bytes(a->out.type);
    const float *gate = a->gate.at, *up = a->up.at;
#pragma omp parallel for num_threads(n_threads)
    for (size_t at = 0; at < n; at += CHUNK) {
        float y[CHUNK];
        size_t m = chunk_at(at, n);
        activate(y, gate + at, a->act, m);
        for (size_t i = 0; i < m; i++)
            y[i] *= up[at + i];
        store_floats((char *)a->out.at + at * bytes, a->out.type, y, m);
    }
}
