/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm and RMS norm, one block a row. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

struct norm {                           /* without holes: every byte of an argument means something  */
    void *out;
    const float *x, *weight, *bias;     /* weight and bias NULL: 1 and 0                             */
    size_t out_stride, stride;
    int cols, rms, add;
    float eps;
};

/* mean is 0 for RMS. A thread reads and writes the same places, so out may be x. T: the type of out. */
template <typename T> __global__ void normalise(struct norm a)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    const float *row = a.x + (size_t)blockIdx.x * a.stride;
    T *to = (T *)a.out + (size_t)blockIdx.x * a.out_stride;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < a.cols && !a.rms; i += THREADS)
        sum += row[i];
    float mean = a.rms ? 0.0f : block_sum<THREADS>(part, sum) / (float)a.cols;
    for (int i = (int)threadIdx.x; i < a.cols; i += THREADS)
        squares += (row[i] - mean) * (row[i] - mean);
    float inverse = 1.0f / sqrtf(block_sum<THREADS>(part, squares) / (float)a.cols + a.eps);
    for (int i = (int)threadIdx.x; i < a.cols; i += THREADS) {
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
    struct norm one = {a->out.at, (const float *)a->x.at, a->weight, a->bias, a->out.stride, a->x.stride,
                       a->x.cols, a->kind == SH_NORM_RMS, a->add, a->eps};
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((normalise<T>), dim3((unsigned)a->x.rows), dim3(THREADS), d->compute, one));
    cuda_end(d, "norm");
}
