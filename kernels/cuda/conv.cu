/* SPDX-License-Identifier: Apache-2.0 */
/* The causal convolution of channels (backend.h, struct sh_conv), sequence by sequence, a thread a channel. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 128 };

struct conv {                           /* of one sequence; without holes: every byte means something */
    float *x, *state;
    const float *weight, *bias;
    size_t stride;
    int kernel, n_row, channels, silu;
};

static __global__ void convolve(struct conv a)
{
    int c = (int)(blockIdx.x * THREADS + threadIdx.x), taps = a.kernel;
    size_t n = (size_t)a.channels;
    float seen[SH_CONV_TAPS];
    if (c >= a.channels)
        return;
    for (int i = 0; i < taps - 1; i++)
        seen[i] = a.state[(size_t)i * n + (size_t)c];
    for (int t = 0; t < a.n_row; t++) {
        float *at = a.x + (size_t)t * a.stride + (size_t)c, sum = a.bias ? a.bias[c] : 0.0f;
        seen[taps - 1] = *at;
        for (int j = 0; j < taps; j++)
            sum += seen[j] * a.weight[(size_t)c * (size_t)taps + (size_t)j];
        *at = a.silu ? sum / (1.0f + expf(-sum)) : sum;
        for (int j = 0; j < taps - 1; j++)
            seen[j] = seen[j + 1];
    }
    for (int i = 0; i < taps - 1; i++)
        a.state[(size_t)i * n + (size_t)c] = seen[i];
}

void cuda_conv(struct sh_dev *d, const struct sh_conv *a)
{
    if (cuda_begin(d, "conv"))
        return;
    cuda_arrived(d, a->weight);
    cuda_arrived(d, a->bias);
    for (int s = 0; s < a->n_seq; s++) {
        struct conv one = {(float *)a->x.at + (size_t)a->start[s] * a->x.stride, a->state + (size_t)s * a->state_step,
                           a->weight, a->bias, a->x.stride, a->kernel, a->start[s + 1] - a->start[s], a->x.cols,
                           a->act == SH_ACT_SILU};
        if (one.n_row)
            SH_LAUNCH(convolve, dim3((unsigned)((one.channels + THREADS - 1) / THREADS)), dim3(THREADS), d->compute,
                      one);
    }
    cuda_end(d, "conv");
}
