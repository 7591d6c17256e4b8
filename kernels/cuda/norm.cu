/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm and RMS norm, one block a row. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

/* mean is 0 for RMS. A thread reads and writes the same places, so out may be x. */
template <typename T>
__global__ void normalise(T *out, size_t out_stride, const float *x, size_t stride, int cols, const float *weight,
                          const float *bias, float eps, int rms, int add)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    const float *row = x + (size_t)blockIdx.x * stride;
    T *to = out + (size_t)blockIdx.x * out_stride;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < cols && !rms; i += THREADS)
        sum += row[i];
    float mean = rms ? 0.0f : block_sum<THREADS>(part, sum) / (float)cols;
    for (int i = (int)threadIdx.x; i < cols; i += THREADS)
        squares += (row[i] - mean) * (row[i] - mean);
    float inverse = 1.0f / sqrtf(block_sum<THREADS>(part, squares) / (float)cols + eps);
    for (int i = (int)threadIdx.x; i < cols; i += THREADS) {
        float y = (row[i] - mean) * inverse;
        y = weight ? y * weight[i] : y;
        y = bias ? y + bias[i] : y;
        to[i] = from_float<T>(add ? to_float(to[i]) + y : y);
    }
}

void cuda_norm(struct sh_dev *d, const struct sh_norm *a)
{
    if (cuda_begin(d, "norm") || !a->x.rows)
        return;
    cuda_arrived(d, a->weight);
    cuda_arrived(d, a->bias);
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((normalise<T>), dim3((unsigned)a->x.rows), dim3(THREADS), d->compute, (T *)a->out.at,
                      a->out.stride, (const float *)a->x.at, a->x.stride, a->x.cols, a->weight, a->bias, a->eps,
                      (int)(a->kind == SH_NORM_RMS), a->add));
    cuda_end(d, "norm");
}
