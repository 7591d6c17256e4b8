/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest number of each row, one block a row. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/spans.cuh"

enum { THREADS = 512 };

/* Does (x, at) come before (y, to)? What is no number, or infinite, comes first; then what is greater; of these the
 * first column. */
static __device__ __forceinline__ int comes_first(float x, int at, float y, int to)
{
    int odd_x = !(x < INFINITY), odd_y = !(y < INFINITY);
    if (odd_x != odd_y)
        return odd_x;
    return odd_x || x == y ? at < to : x > y;
}

static __global__ void find_best(struct sh_best *out, const float *x, size_t stride, int cols)
{
    SH_SHARED(float, value, THREADS / WARP);
    SH_SHARED(int, column, THREADS / WARP);
    const float *row = x + (size_t)blockIdx.x * stride;
    float best = -INFINITY;
    int at = cols;                      /* behind all: whatever is there comes first              */
    for (int i = (int)threadIdx.x; i < cols; i += THREADS)
        if (comes_first(row[i], i, best, at)) {
            best = row[i];
            at = i;
        }
    for (int step = WARP / 2; step; step /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, best, step);
        int there = __shfl_xor_sync(ALL_LANES, at, step);
        if (comes_first(other, there, best, at)) {
            best = other;
            at = there;
        }
    }
    if (threadIdx.x % WARP == 0) {
        value[threadIdx.x / WARP] = best;
        column[threadIdx.x / WARP] = at;
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < THREADS / WARP; i++)
        if (comes_first(value[i], column[i], best, at)) {
            best = value[i];
            at = column[i];
        }
    out[blockIdx.x].value = best;
    out[blockIdx.x].column = at;
}

void cuda_best(struct sh_dev *d, struct sh_best *out, struct sh_mat x)
{
    if (cuda_begin(d, "best") || !x.rows)
        return;
    cuda_stage_begin(d, SH_STAGE_TOKENS);
    SH_LAUNCH(find_best, dim3((unsigned)x.rows), dim3(THREADS), d->compute, out, (const float *)x.at, x.stride,
              x.cols);
    cuda_stage_end(d);
    cuda_end(d, "best");
}
