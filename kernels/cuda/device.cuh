/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels share: how they are launched, numbers in three formats, activations, and sums over a block. */
#ifndef SH_KERNELS_CUDA_DEVICE_CUH
#define SH_KERNELS_CUDA_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/backend.h"

/* What no host compiler can read, as macros: tests/emu defines its own, so that it can compile the same sources.
 * A kernel that is a template goes in parentheses: SH_LAUNCH((scale<float>), grid, block, stream, …). */
#ifndef SH_EMU
#define SH_LAUNCH(kernel, grid, block, stream, ...) (kernel)<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#define SH_SHARED(type, name, count) __shared__ type name[count]
/* x & mask | bits, which the compiler makes two operations of when both are constants. */
#define SH_AND_OR(to, x, mask, bits) \
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(to) : "r"(x), "r"(mask), "r"(bits))
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu

static __device__ __forceinline__ float to_float(float x) { return x; }
static __device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
static __device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

static __device__ __forceinline__ float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

static __device__ __forceinline__ float activated(int act, float x)
{
    switch (act) {
    case SH_ACT_RELU: return x < 0 ? 0.0f : x;          /* NaN stays NaN */
    case SH_ACT_GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case SH_ACT_GELU_TANH: return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case SH_ACT_SILU: return x / (1.0f + expf(-x));
    case SH_ACT_RELU2: return x < 0 ? 0.0f : x * x;
    case SH_ACT_SIGMOID: return logistic(x);
    default: return x;
    }
}

/* Runs the statement with T standing for the C++ type of an enum sh_type. */
#define BY_TYPE(type, T, ...)                                  \
    do {                                                       \
        if ((type) == SH_F32) {                                \
            typedef float T;                                   \
            __VA_ARGS__;                                       \
        } else if ((type) == SH_F16) {                         \
            typedef __half T;                                  \
            __VA_ARGS__;                                       \
        } else {                                               \
            typedef __nv_bfloat16 T;                           \
            __VA_ARGS__;                                       \
        }                                                      \
    } while (0)

/* Blocks for a loop over n elements that strides by the whole grid. */
static inline dim3 grid_for(size_t n, int threads)
{
    size_t blocks = (n + (size_t)threads - 1) / (size_t)threads;
    return dim3((unsigned)(blocks < 16384 ? blocks : 16384));
}

/* Over the block's threads; every thread gets the result. BLOCK: threads of the block, a multiple of
 * WARP. `part` is shared memory of BLOCK / WARP floats, free again when the function returns. */
#define SUM_PARTS(BLOCK) ((BLOCK) / WARP)

template <int BLOCK, typename Part> __device__ float block_sum(Part &part, float x)
{
    for (int step = WARP / 2; step; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < BLOCK / WARP; i++)
        sum += part[i];
    __syncthreads();
    return sum;
}

/* The sum of whole numbers; `found` is shared memory, found[0] is used. */
template <typename Found> __device__ int block_count(Found &found, int n)
{
    if (threadIdx.x == 0)
        found[0] = 0;
    __syncthreads();
    atomicAdd(&found[0], n);
    __syncthreads();
    n = found[0];
    __syncthreads();
    return n;
}

template <int BLOCK, typename Part> __device__ float block_max(Part &part, float x)
{
    for (int step = WARP / 2; step; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = x;
    __syncthreads();
    float most = part[0];
    for (int i = 1; i < BLOCK / WARP; i++)
        most = fmaxf(most, part[i]);
    __syncthreads();
    return most;
}

#endif
