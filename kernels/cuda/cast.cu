/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the three number formats, rounding to nearest even. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

/* Element i of a [rows, cols] matrix with its own stride between rows. */
static __device__ __forceinline__ size_t place(size_t i, size_t cols, size_t stride)
{
    return stride == cols ? i : i / cols * stride + i % cols;
}

template <typename To, typename From>
__global__ void convert(To *to, size_t to_stride, const From *from, size_t stride, size_t n, size_t cols)
{
    size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        to[place(i, cols, to_stride)] = from_float<To>(to_float(from[place(i, cols, stride)]));
}

void cuda_convert(struct sh_dev *d, const struct sh_mat *to, const struct sh_mat *from, cudaStream_t stream)
{
    size_t n = (size_t)from->rows * (size_t)from->cols, cols = (size_t)from->cols;
    dim3 grid = grid_for(n, THREADS);
    if (cuda_has_failed(d) || !n)
        return;
    BY_TYPE(to->type, To,
            BY_TYPE(from->type, From, SH_LAUNCH((convert<To, From>), grid, dim3(THREADS), stream, (To *)to->at,
                                                to->stride, (const From *)from->at, from->stride, n, cols)));
}

void cuda_cast(struct sh_dev *d, struct sh_mat out, struct sh_mat x)
{
    if (cuda_begin(d, "cast"))
        return;
    cuda_convert(d, &out, &x, d->compute);
    cuda_end(d, "cast");
}
