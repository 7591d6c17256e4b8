/* SPDX-License-Identifier: Apache-2.0 */
/* The gated delta rule (backend.h, struct sh_delta), sequence by sequence: a block a value head, whose threads share
 * the columns. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 128 };

struct delta {                          /* of one sequence; without holes: every byte means something */
    const float *x, *a, *b, *log_a, *step;
    float *out, *state;
    int n_k, n_v, d_k, d_v, n_row, channels, in_turns, own_decays;
    float strength, least;
};

/* to: x of length `length`; all threads of the block. */
template <typename Part, typename To>
static __device__ void scale_to(Part &part, To &to, const float *x, int n, float length)
{
    float sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        sum += x[i] * x[i];
    float by = length / sqrtf(block_sum<THREADS>(part, sum) + 1e-6f);
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        to[i] = x[i] * by;
}

/* Of a head's token, [d_k]; all threads of the block. */
template <typename To>
static __device__ void decays(To &to, const struct delta &a, int head, size_t at, float rate)
{
    for (int i = (int)threadIdx.x; i < a.d_k; i += THREADS) {
        size_t n = a.own_decays ? (size_t)a.d_k : 1, k = a.own_decays ? (size_t)i : 0;
        float gap = a.a[at * n + k] + a.step[(size_t)head * n + k];
        to[i] = expf(a.least < 0 ? a.least * logistic(rate * gap) : -rate * softplus(gap));
    }
}

static __global__ void move_state(struct delta a)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    SH_SHARED(float, q, SH_DELTA_KEY);
    SH_SHARED(float, k, SH_DELTA_KEY);
    SH_SHARED(float, decay, SH_DELTA_KEY);
    int h = (int)blockIdx.x, key_head = a.in_turns ? h % a.n_k : h / (a.n_v / a.n_k), keys = a.n_k * a.d_k;
    float *state = a.state + (size_t)h * (size_t)a.d_k * (size_t)a.d_v;
    float rate = expf(a.log_a[h]);
    for (int t = 0; t < a.n_row; t++) {
        const float *x = a.x + (size_t)t * (size_t)a.channels, *v = x + 2 * keys + h * a.d_v;
        size_t at = (size_t)t * (size_t)a.n_v + (size_t)h;
        scale_to(part, q, x + key_head * a.d_k, a.d_k, 1.0f / sqrtf((float)a.d_k));
        scale_to(part, k, x + keys + key_head * a.d_k, a.d_k, 1.0f);
        decays(decay, a, h, at, rate);
        __syncthreads();
        float beta = a.strength * logistic(a.b[at]);
        for (int j = (int)threadIdx.x; j < a.d_v; j += THREADS) {
            float known = 0, out = 0;
            for (int i = 0; i < a.d_k; i++)
                known += state[(size_t)i * (size_t)a.d_v + (size_t)j] * decay[i] * k[i];
            float diff = (v[j] - known) * beta;
            for (int i = 0; i < a.d_k; i++) {
                float *s = state + (size_t)i * (size_t)a.d_v + (size_t)j;
                *s = *s * decay[i] + k[i] * diff;
                out += *s * q[i];
            }
            a.out[at * (size_t)a.d_v + (size_t)j] = out;
        }
        __syncthreads();
    }
}

void cuda_delta(struct sh_dev *d, const struct sh_delta *a)
{
    int channels = a->x.cols;
    if (cuda_begin(d, "delta"))
        return;
    cuda_arrived(d, a->log_a);
    cuda_arrived(d, a->step);
    for (int s = 0; s < a->n_seq; s++) {
        size_t row = (size_t)a->start[s], n_v = (size_t)a->n_v, n_decay = a->own_decays ? n_v * (size_t)a->d_k : n_v;
        struct delta one = {(const float *)a->x.at + row * (size_t)channels, a->a + row * n_decay, a->b + row * n_v,
                            a->log_a, a->step, (float *)a->out.at + row * n_v * (size_t)a->d_v,
                            a->state + (size_t)s * a->state_step, a->n_k, a->n_v, a->d_k, a->d_v,
                            a->start[s + 1] - a->start[s], channels, a->in_turns, a->own_decays, a->strength, a->least};
        if (one.n_row)
            SH_LAUNCH(move_state, dim3((unsigned)a->n_v), dim3(THREADS), d->compute, one);
    }
    cuda_end(d, "delta");
}
