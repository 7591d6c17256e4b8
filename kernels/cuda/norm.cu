/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm and RMS norm, one block a row. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

/* mean is 0 for RMS. A thread reads and writes the same places, so out may be x. T: the type of out. */
template <typename T> __global__ void normalise(struct sh_norm a)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    const float *row = (const float *)a.x.at + (size_t)blockIdx.x * a.x.stride;
    T *to = (T *)a.out.at + (size_t)blockIdx.x * a.out.stride;
    int cols = a.x.cols, rms = a.kind == SH_NORM_RMS;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < cols && !rms; i += THREADS)
        sum += row[i];
    float mean = rms ? 0.0f : block_sum<THREADS>(part, sum) / (float)cols;
    for (int i = (int)threadIdx.x; i < cols; i += THREADS)
        squares += (row[i] - mean) * (row[i] - mean);
    float inverse = 1.0f / sqrtf(block_sum<THREADS>(part, squares) / (float)cols + a.eps);
    for (int i = (int)threadIdx.x; i < cols; i += THREADS) {
        float y = (row[i] - mean) * inverse;
        y = a.weight ? y * a.weight[i] : y;
        y = a.bias ? y + a.bias[i] : y;
        to[i] = from_float<T>(a.add ? to_float(to[i]) + y : y);
    }
}

void cuda_norm(struct sh_dev *d, const struct sh_norm *a)
{
    if (cuda_begin(d, "norm") || !a->x.rows)
        return;
    cuda_arrived(d, a->weight);
    cuda_arrived(d, a->bias);
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((normalise<T>), dim3((unsigned)a->x.rows), dim3(THREADS), d->compute, *a));
    cuda_end(d, "norm");
}
