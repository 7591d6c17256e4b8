/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of a run of numbers; y may be x. */
#ifndef SH_KERNELS_CPU_ACTIVATE_H
#define SH_KERNELS_CPU_ACTIVATE_H

#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/vector.h"

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
    case SH_ACT_NONE:
        memmove(y, x, n * sizeof *y);
    }
}

#endif
