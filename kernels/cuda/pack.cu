/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a tile packed for the host: causal, one head after another. The arithmetic of log8 is
 * that of src/base/score.h, operation by operation. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tile.cuh"
#include "src/base/score.h"

enum { THREADS = 128 };

static __device__ __forceinline__ uint8_t log8(float s, float lse)
{
    float x = __fmul_rn(__fsub_rn(s, lse), -1.0f / SH_LOG8_STEP);
    x = x < (float)SH_LOG8_ZERO ? x : (float)SH_LOG8_ZERO;      /* first: so NaN becomes ZERO */
    x = x > 0 ? x : 0;
    return (uint8_t)(__float_as_uint(__fadd_rn(x, 12582912.0f)) & 255u);        /* 1.5 * 2^23 rounds to even */
}

static __device__ __forceinline__ void pack_score(float *to, float s, float top, float inverse, float)
{
    *to = tile_probability(s, top, inverse);
}

static __device__ __forceinline__ void pack_score(__half *to, float s, float top, float inverse, float)
{
    *to = __float2half_rn(tile_probability(s, top, inverse));
}

static __device__ __forceinline__ void pack_score(uint8_t *to, float s, float, float, float lse)
{
    *to = log8(s, lse);
}

template <typename T> __global__ void pack_rows(struct cuda_tile t, T *out)
{
    int row = (int)blockIdx.x, head = (int)blockIdx.y, position = t.first_row + row;
    int n = position - tile_first_key(position, t.window) + 1;
    size_t at = (size_t)head * (size_t)t.n_rows + (size_t)row;
    float top = t.top[at], sum = t.sum[at], inverse = 1.0f / sum, lse = top + logf(sum);
    const float *s = t.s + tile_row(t, head, row);
    T *to = out + tile_packed_row(t, head, row);
    for (int j = (int)threadIdx.x; j < n; j += THREADS)
        pack_score(&to[j], s[j], top, inverse, lse);
}

void cuda_pack(const struct cuda_tile *t, enum sh_pack pack, void *out, cudaStream_t stream)
{
    dim3 grid((unsigned)t->n_rows, (unsigned)t->n_head);
    if (pack == SH_PACK_F32)
        SH_LAUNCH((pack_rows<float>), grid, dim3(THREADS), stream, *t, (float *)out);
    else if (pack == SH_PACK_F16)
        SH_LAUNCH((pack_rows<__half>), grid, dim3(THREADS), stream, *t, (__half *)out);
    else
        SH_LAUNCH((pack_rows<uint8_t>), grid, dim3(THREADS), stream, *t, (uint8_t *)out);
}
