/* SPDX-License-Identifier: Apache-2.0 */
/* out = act(gate) * up */
#include "kernels/cuda/act.cuh"
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

template <typename T> __global__ void multiply(T *out, const float *gate, const float *up, int act, size_t n)
{
    size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        out[i] = from_float<T>(activated(act, gate[i]) * up[i]);
}

void cuda_gate(struct sh_dev *d, const struct sh_gate *a)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols;
    dim3 grid = grid_for(n, THREADS);
    if (cuda_begin(d, "gate") || !n)
        return;
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((multiply<T>), grid, dim3(THREADS), d->compute, (T *)a->out.at, (const float *)a->gate.at,
                      (const float *)a->up.at, a->act, n));
    cuda_end(d, "gate");
}
