/* SPDX-License-Identifier: Apache-2.0 */
/* The gated delta rule (backend.h, struct sh_delta), value heads on threads. Rows of a state are d_v numbers one after
 * another. */
#include <stdlib.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/team.h"

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

struct token {                          /* of a head                                              */
    float *q, *k;                       /* scaled                                                 */
    const float *v;
    float *diff, *out;                  /* [d_v]: scratch; what it gives                          */
    float *decay;                       /* [d_k]                                                  */
    float strength;
};

static void step(float *state, const struct sh_delta *a, const struct token *t)
{
    int d = a->d_v;
    for (int j = 0; j < d; j++)
        t->diff[j] = t->out[j] = 0;
    for (int i = 0; i < a->d_k; i++) {
        float *row = state + (size_t)i * (size_t)d;
        for (int j = 0; j < d; j++) {
            row[j] *= t->decay[i];
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

/* Of the head's row `at`. */
static void decay(float *to, const struct sh_delta *a, int head, size_t at, float rate)
{
    size_t n = a->own_decays ? (size_t)a->d_k : 1;
    const float *x = a->a + at * n, *step = a->step + (size_t)head * n;
    for (size_t i = 0; i < n; i++) {
        float gap = x[i] + step[i];
        to[i] = expf(a->least < 0 ? a->least * logistic(rate * gap) : -rate * softplus(gap));
    }
    for (int i = 1; i < a->d_k && n == 1; i++)
        to[i] = to[0];
}

static void run_head(void *arg, int number)
{
    const struct sh_delta *a = arg;
    int s = number / a->n_v, h = number % a->n_v, keys = a->n_k * a->d_k;
    int key_head = a->in_turns ? h % a->n_k : h / (a->n_v / a->n_k);
    size_t n = (size_t)a->x.cols;
    float *state = a->state + (size_t)s * a->state_step + (size_t)h * (size_t)a->d_k * (size_t)a->d_v;
    float *scratch = xmalloc((3 * (size_t)a->d_k + (size_t)a->d_v) * sizeof *scratch);
    struct token t = {.q = scratch, .k = scratch + a->d_k, .decay = scratch + 2 * a->d_k,
                      .diff = scratch + 3 * a->d_k};
    float rate = expf(a->log_a[h]), length = 1 / sqrtf((float)a->d_k);
    for (int row = a->start[s]; row < a->start[s + 1]; row++) {
        const float *x = (const float *)a->x.at + (size_t)row * n;
        size_t at = (size_t)row * (size_t)a->n_v + (size_t)h;
        scale_to(t.q, x + key_head * a->d_k, a->d_k, length);
        scale_to(t.k, x + keys + key_head * a->d_k, a->d_k, 1);
        t.v = x + 2 * keys + h * a->d_v;
        t.out = (float *)a->out.at + at * (size_t)a->d_v;
        decay(t.decay, a, h, at, rate);
        t.strength = a->strength * logistic(a->b[at]);
        step(state, a, &t);
    }
    free(scratch);
}

void CPU_NAME(cpu_delta)(const struct sh_delta *a, int n_threads)
{
    struct sh_delta copy = *a;
    sh_team_each(n_threads, a->n_seq * a->n_v, run_head, &copy);
}
