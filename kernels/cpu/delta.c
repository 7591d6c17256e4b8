/* SPDX-License-Identifier: Apache-2.0 */
/* The gated delta rule (backend.h, struct sh_delta): first the convolution, channels on threads; then the states, value
 * heads on threads. Rows of a state are d_v numbers one after another. */
#include <stdlib.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/team.h"

enum { CHANNELS = 64 };                 /* that a thread takes at a time                           */

static size_t channels_of(const struct sh_delta *a)
{
    return (size_t)a->x.cols;
}

static float *state_of(const struct sh_delta *a, int sequence)
{
    size_t numbers = (size_t)(a->kernel - 1) * channels_of(a) + (size_t)a->n_v * (size_t)a->d_k * (size_t)a->d_v;
    return a->state + (size_t)sequence * numbers;
}

/* ---- the convolution, in place ---- */

/* Channels [first, last). seen: the last `kernel` rows, row t in t % kernel; first those of the state. */
static void convolve(const struct sh_delta *a, int sequence, int first, int last)
{
    int n_row = a->start[sequence + 1] - a->start[sequence], taps = a->kernel, width = last - first;
    size_t n = channels_of(a), bytes = (size_t)width * sizeof(float);
    float *seen = xmalloc((size_t)taps * bytes), *state = state_of(a, sequence) + first;
    for (int i = 0; i < taps - 1; i++)
        memcpy(seen + i * width, state + (size_t)i * n, bytes);
    for (int t = 0; t < n_row; t++) {
        float sum[CHANNELS] = {0}, *row = (float *)a->x.at + (size_t)(a->start[sequence] + t) * n + first;
        memcpy(seen + (t + taps - 1) % taps * width, row, bytes);
        for (int j = 0; j < taps; j++)
            for (int c = 0; c < width; c++)
                sum[c] += seen[(t + j) % taps * width + c] * a->conv[(first + c) * taps + j];
        for (int c = 0; c < width; c++)
            row[c] = sum[c] * logistic(sum[c]);
    }
    for (int i = 0; i < taps - 1; i++)
        memcpy(state + (size_t)i * n, seen + (n_row + i) % taps * width, bytes);
    free(seen);
}

static void convolve_some(void *arg, int i)
{
    const struct sh_delta *a = arg;
    int first = i * CHANNELS, last = a->x.cols - first < CHANNELS ? a->x.cols : first + CHANNELS;
    for (int s = 0; s < a->n_seq; s++)
        convolve(a, s, first, last);
}

/* ---- the states ---- */

/* to: x of length `length`. */
static void scale_to(float *to, const float *x, int n, float length)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    float by = length / sqrtf(sum + 1e-6f);
    for (int i = 0; i < n; i++)
        to[i] = x[i] * by;
}

static float softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

struct token {                          /* of a head                                              */
    float *q, *k;                       /* scaled                                                 */
    const float *v;
    float *diff, *out;                  /* [d_v]: scratch; what it gives                          */
    float decay, strength;
};

static void step(float *state, const struct sh_delta *a, const struct token *t)
{
    int d = a->d_v;
    for (int j = 0; j < d; j++)
        t->diff[j] = t->out[j] = 0;
    for (int i = 0; i < a->d_k; i++) {
        float *row = state + (size_t)i * (size_t)d;
        for (int j = 0; j < d; j++) {
            row[j] *= t->decay;
            t->diff[j] += row[j] * t->k[i];
        }
    }
    for (int j = 0; j < d; j++)
        t->diff[j] = (t->v[j] - t->diff[j]) * t->strength;
    for (int i = 0; i < a->d_k; i++) {
        float *row = state + (size_t)i * (size_t)d;
        for (int j = 0; j < d; j++) {
            row[j] += t->k[i] * t->diff[j];
            t->out[j] += row[j] * t->q[i];
        }
    }
}

static void run_head(void *arg, int number)
{
    const struct sh_delta *a = arg;
    int s = number / a->n_v, h = number % a->n_v, keys = a->n_k * a->d_k;
    int key_head = a->in_turns ? h % a->n_k : h / (a->n_v / a->n_k);
    size_t n = channels_of(a);
    float *state = state_of(a, s) + (size_t)(a->kernel - 1) * n + (size_t)h * (size_t)a->d_k * (size_t)a->d_v;
    float *scratch = xmalloc((2 * (size_t)a->d_k + (size_t)a->d_v) * sizeof *scratch);
    struct token t = {.q = scratch, .k = scratch + a->d_k, .diff = scratch + 2 * a->d_k};
    float rate = expf(a->log_a[h]), length = 1 / sqrtf((float)a->d_k);
    for (int row = a->start[s]; row < a->start[s + 1]; row++) {
        const float *x = (const float *)a->x.at + (size_t)row * n;
        size_t at = (size_t)row * (size_t)a->n_v + (size_t)h;
        scale_to(t.q, x + key_head * a->d_k, a->d_k, length);
        scale_to(t.k, x + keys + key_head * a->d_k, a->d_k, 1);
        t.v = x + 2 * keys + h * a->d_v;
        t.out = (float *)a->out.at + at * (size_t)a->d_v;
        t.decay = expf(-rate * softplus(a->a[at] + a->step[h]));
        t.strength = logistic(a->b[at]);
        step(state, a, &t);
    }
    free(scratch);
}

void CPU_NAME(cpu_delta)(const struct sh_delta *a, int n_threads)
{
    struct sh_delta copy = *a;
    sh_team_each(n_threads, (a->x.cols + CHANNELS - 1) / CHANNELS, convolve_some, &copy);
    sh_team_each(n_threads, a->n_seq * a->n_v, run_head, &copy);
}
