/* SPDX-License-Identifier: Apache-2.0 */
/* The gated linear recurrence (backend.h, struct sh_lru), sequence by sequence, a thread a channel. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 64 };

struct lru {                            /* of one sequence; without holes: every byte means something */
    float *out, *state;
    const float *x, *a, *b, *rate;
    const int *position;                /* [n_row] or NULL                                         */
    size_t out_stride, x_stride, a_stride, b_stride;
    int n_row, channels, begins, unused;    /* begins: the first row, without positions            */
};

static __global__ void run_channel(struct lru a)
{
    int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i >= a.channels)
        return;
    float slope = -8.0f * softplus(a.rate[i]), state = a.state[i];
    for (int t = 0; t < a.n_row; t++) {
        size_t row = (size_t)t;
        float u = slope * logistic(a.a[row * a.a_stride + (size_t)i]), lost = -expm1f(u);
        float given = logistic(a.b[row * a.b_stride + (size_t)i]) * a.x[row * a.x_stride + (size_t)i];
        float kept = lost < 0.5f ? state - state * lost : state * expf(u);
        int begins = a.position ? !a.position[t] : a.begins && !t;
        state = begins ? given : kept + sqrtf(lost * (2.0f - lost)) * given;
        a.out[row * a.out_stride + (size_t)i] = state;
    }
    a.state[i] = state;
}

static const float *from(const struct sh_mat &m, int row)
{
    return (const float *)m.at + (size_t)row * m.stride;
}

void cuda_lru(struct sh_dev *d, const struct sh_lru *a)
{
    if (cuda_begin(d, "lru"))
        return;
    cuda_arrived(d, a->rate);
    for (int s = 0; s < a->n_seq; s++) {
        int row = a->start[s], channels = a->x.cols;
        struct lru one = {(float *)a->out.at + (size_t)row * a->out.stride, a->state + (size_t)s * a->state_step,
                          from(a->x, row), from(a->a, row), from(a->b, row), a->rate,
                          a->position ? a->position + row : NULL, a->out.stride, a->x.stride, a->a.stride, a->b.stride,
                          a->start[s + 1] - row, channels, !(a->first && a->first[s]), 0};
        if (one.n_row)
            SH_LAUNCH(run_channel, dim3((unsigned)((channels + THREADS - 1) / THREADS)), dim3(THREADS), d->compute,
                      one);
    }
    cuda_end(d, "lru");
}
