/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a tile packed for the host: causal, one head after another. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tile.cuh"
#include "src/base/score.h"

enum { THREADS = 128 };

static __device__ __forceinline__ void pack_score(float *to, float p)
{
    *to = p;
}

static __device__ __forceinline__ void pack_score(__half *to, float p)
{
    *to = __float2half_rn(p);
}

template <typename T> __global__ void pack_rows(struct cuda_tile t, T *out)
{
    int row = (int)blockIdx.x, head = (int)blockIdx.y, position = t.first_row + row;
    int n = position - tile_first_key(position, t.window) + 1;
    size_t at = (size_t)head * (size_t)t.n_rows + (size_t)row;
    float top = t.top[at], inverse = 1.0f / t.sum[at];
    const float *s = t.s + tile_row(t, head, row);
    T *to = out + tile_packed_row(t, head, row);
    for (int j = (int)threadIdx.x; j < n; j += THREADS)
        pack_score(&to[j], tile_probability(s[j], top, inverse));
}

/* What a row's codes need takes divisions in double precision: one thread makes it. */
__global__ void code_rows(struct cuda_tile t, uint8_t *out)
{
    SH_SHARED(struct sh_log8, codes, 1);
    int row = (int)blockIdx.x, head = (int)blockIdx.y, position = t.first_row + row;
    int n = position - tile_first_key(position, t.window) + 1;
    size_t at = (size_t)head * (size_t)t.n_rows + (size_t)row;
    float top = t.top[at], sum = t.sum[at], inverse = 1.0f / sum;
    const float *s = t.s + tile_row(t, head, row);
    uint8_t *to = out + tile_packed_row(t, head, row);
    if (threadIdx.x == 0)
        codes[0] = sh_log8_row(n, top, top + logf(sum), inverse);
    __syncthreads();
    const struct sh_log8 mine = codes[0];
    for (int j = (int)threadIdx.x; j < n; j += THREADS)
        to[j] = sh_log8_code(&mine, s[j], tile_probability(s[j], top, inverse));
}

void cuda_pack(const struct cuda_tile *t, enum sh_pack pack, void *out, cudaStream_t stream)
{
    dim3 grid((unsigned)t->n_rows, (unsigned)t->n_head);
    if (pack == SH_PACK_F32)
        SH_LAUNCH((pack_rows<float>), grid, dim3(THREADS), stream, *t, (float *)out);
    else if (pack == SH_PACK_F16)
        SH_LAUNCH((pack_rows<__half>), grid, dim3(THREADS), stream, *t, (__half *)out);
    else
        SH_LAUNCH(code_rows, grid, dim3(THREADS), stream, *t, (uint8_t *)out);
}
