/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the rows of a tile, one block a row, which is read three times, from the second on out of the cache;
 * and its rows packed for the host: causal, one head after another. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tile.cuh"
#include "src/base/log8.h"

enum { THREADS = 128 };

static __device__ __forceinline__ float bent(float x, const struct cuda_bends &b, int head, int key, int distance)
{
    x = b.softcap > 0 ? b.softcap * tanhf(x / b.softcap) : x;
    if (!b.slopes)
        return x;
    if (!b.rounds_slopes)
        return x - b.slopes[head] * (float)distance;
    float slope = to_float(__float2bfloat16_rn(b.slopes[head]));
    return x + b.scale * to_float(__float2bfloat16_rn(slope * (float)key));
}

__global__ void softmax(struct cuda_tile t, struct cuda_bends bends, int *fault, int blame)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    int row = (int)blockIdx.x, head = (int)blockIdx.y, i = (int)threadIdx.x;
    int position = t.first_row + row, first = tile_first_key(position, t.window), n = position - first + 1;
    int hidden = t.chunk > 0 ? position / t.chunk * t.chunk - first : 0;
    float *s = t.s + tile_row(t, head, row);
    float top = -INFINITY, sum = 0;
    for (int j = i; j < n; j += THREADS) {
        if (bends.softcap > 0 || bends.slopes)
            s[j] = bent(s[j], bends, head, first + j, n - 1 - j);
        if (j < hidden)
            s[j] = -INFINITY;
        top = fmaxf(top, s[j]);
    }
    top = block_max<THREADS>(part, top);
    for (int j = i; j < n; j += THREADS)
        sum += expf(s[j] - top);
    sum = block_sum<THREADS>(part, sum);
    float sink = bends.sinks ? expf(fminf(bends.sinks[head] - top, 80.0f)) : 0.0f;
    sum += sink;
    if (bends.mass && i == 0)
        bends.mass[(size_t)row * (size_t)t.n_head + (size_t)head] = sink / sum;
    size_t at = (size_t)head * (size_t)t.n_rows + (size_t)row;
    if (i == 0) {
        t.top[at] = top;
        t.sum[at] = sum;
        if (!(sum < INFINITY))
            atomicMax(fault, blame);
    }
    if (!t.p)
        return;
    float *p = t.p + at * (size_t)t.width;
    int before = first - t.first_key;
    float inverse = 1.0f / sum;
    for (int c = i; c < t.width; c += THREADS) {
        int j = c - before;
        p[c] = j >= 0 && j < n ? tile_probability(s[j], top, inverse) : 0.0f;
    }
}

void cuda_softmax(const struct cuda_tile *t, const struct cuda_bends *bends, int *fault, int blame,
                  cudaStream_t stream)
{
    SH_LAUNCH(softmax, dim3((unsigned)t->n_rows, (unsigned)t->n_head), dim3(THREADS), stream, *t, *bends, fault, blame);
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
        to[j] = from_float<T>(tile_probability(s[j], top, inverse));
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
