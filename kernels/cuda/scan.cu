/* SPDX-License-Identifier: Apache-2.0 */
/* The selective state space (backend.h, struct sh_scan), sequence by sequence, a thread a channel: neighbouring threads
 * read neighbouring numbers of the state. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 64 };
#define SLOW 0.1f                       /* see kernels/cpu/scan.c                                  */

struct scan {                           /* of one sequence; without holes: every byte means something */
    float *out, *state;
    const float *x, *b, *c, *dt, *log_a, *dt_bias, *skip;
    size_t out_stride, x_stride, b_stride, c_stride, dt_stride;
    int n_head, d_head, n_group, d_state, own_decays, n_row;
    float least, most;
};

static __global__ void scan_channel(struct scan a)
{
    int i = (int)(blockIdx.x * THREADS + threadIdx.x), channels = a.n_head * a.d_head;
    if (i >= channels)
        return;
    int head = i / a.d_head;
    size_t group = (size_t)(head / (a.n_head / a.n_group)) * (size_t)a.d_state;
    const float *log_a = a.log_a + (size_t)head * (size_t)(a.own_decays ? a.d_state : 1);
    float rate = expf(log_a[0]), skip = a.skip[head];
    for (int t = 0; t < a.n_row; t++) {
        const float *b = a.b + (size_t)t * a.b_stride + group, *c = a.c + (size_t)t * a.c_stride + group;
        float x = a.x[(size_t)t * a.x_stride + (size_t)i], out = 0;
        float dt = softplus(a.dt[(size_t)t * a.dt_stride + (size_t)head] + a.dt_bias[head]);
        dt = dt < a.least ? a.least : dt > a.most ? a.most : dt;
        int is_slow = a.d_head > 1 && !a.own_decays && rate * dt < SLOW;
        float decay = is_slow ? 1.0f : expf(-rate * dt), lost = is_slow ? -expm1f(-rate * dt) : 0.0f, given = dt * x;
        for (int k = 0; k < a.d_state; k++) {
            float *s = a.state + (size_t)k * (size_t)channels + (size_t)i;
            if (a.own_decays)
                decay = expf(-expf(log_a[k]) * dt);
            float now = *s * decay + (given * b[k] - *s * lost);
            *s = now;
            out += now * c[k];
        }
        a.out[(size_t)t * a.out_stride + (size_t)i] = out + skip * x;
    }
}

static const float *from(const struct sh_mat &m, int row)
{
    return (const float *)m.at + (size_t)row * m.stride;
}

void cuda_scan(struct sh_dev *d, const struct sh_scan *a)
{
    if (cuda_begin(d, "scan"))
        return;
    cuda_arrived(d, a->log_a);
    cuda_arrived(d, a->dt_bias);
    cuda_arrived(d, a->skip);
    for (int s = 0; s < a->n_seq; s++) {
        int row = a->start[s], channels = a->n_head * a->d_head;
        struct scan one = {(float *)a->out.at + (size_t)row * a->out.stride, a->state + (size_t)s * a->state_step,
                           from(a->x, row), from(a->b, row), from(a->c, row), from(a->dt, row), a->log_a, a->dt_bias,
                           a->skip, a->out.stride, a->x.stride, a->b.stride, a->c.stride, a->dt.stride, a->n_head,
                           a->d_head, a->n_group, a->d_state, a->own_decays, a->start[s + 1] - row, a->least, a->most};
        if (one.n_row)
            SH_LAUNCH(scan_channel, dim3((unsigned)((channels + THREADS - 1) / THREADS)), dim3(THREADS), d->compute,
                      one);
    }
    cuda_end(d, "scan");
}
