/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, in f32. */
#ifndef SH_KERNELS_CUDA_ACT_CUH
#define SH_KERNELS_CUDA_ACT_CUH

#include "kernels/backend.h"
#include "kernels/cuda/launch.cuh"

static __device__ __forceinline__ float activated(int act, float x)
{
    switch (act) {
    case SH_ACT_RELU: return x < 0 ? 0.0f : x;          /* NaN stays NaN */
    case SH_ACT_GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case SH_ACT_GELU_TANH: return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case SH_ACT_SILU: return x / (1.0f + expf(-x));
    default: return x;
    }
}

#endif
