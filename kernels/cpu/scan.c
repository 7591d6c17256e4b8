/* SPDX-License-Identifier: Apache-2.0 */
/* The selective state space (backend.h, struct sh_scan), channels on threads. A thread's channels share a group, and
 * where heads are wider than one channel, a head. */
#include <stdlib.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/team.h"

enum { CHANNELS = 64 };                 /* that a thread takes at a time                           */

/* A decay near 1 has few digits left of what is lost, and thousands of equal ones would add up: below this exponent the
 * state loses 1 - exp(-exponent) of itself instead. */
#define SLOW 0.1f

struct part {                           /* channels [first, first + n) of a sequence               */
    const struct sh_scan *a;
    int first, n;
    float *state;                       /* of channel `first`                                      */
    float *rate;                        /* exp(log_a): [n], with own decays [d_state, n]           */
};

static const float *row_of(const struct sh_mat *m, int row)
{
    return (const float *)m->at + (size_t)row * m->stride;
}

static int head_of(const struct part *p, int i)
{
    return (p->first + i) / p->a->d_head;
}

static void find_rates(struct part *p)
{
    int own = p->a->own_decays, each = own ? p->a->d_state : 1;
    for (int k = 0; k < each; k++)
        for (int i = 0; i < p->n; i++)
            p->rate[k * p->n + i] = expf(p->a->log_a[(size_t)head_of(p, i) * (size_t)each + (size_t)k]);
}

static float find_step(const struct sh_scan *a, int row, int head)
{
    float dt = softplus(row_of(&a->dt, row)[head] + a->dt_bias[head]);
    return dt < a->least ? a->least : dt > a->most ? a->most : dt;
}

static void run_row(const struct part *p, int row)
{
    const struct sh_scan *a = p->a;
    size_t channels = (size_t)a->x.cols, group = (size_t)(head_of(p, 0) / (a->n_head / a->n_group));
    const float *x = row_of(&a->x, row) + p->first;
    const float *b = row_of(&a->b, row) + group * (size_t)a->d_state, *c = row_of(&a->c, row) +
                                                                           group * (size_t)a->d_state;
    float *out = (float *)a->out.at + (size_t)row * a->out.stride + p->first;
    float dt[CHANNELS], given[CHANNELS], decay[CHANNELS], lost = 0, sum[CHANNELS] = {0};
    int n = p->n;
    for (int i = 0; i < n; i++)
        dt[i] = i && a->d_head > 1 ? dt[0] : find_step(a, row, head_of(p, i));
    for (int i = 0; i < n; i++) {
        given[i] = dt[i] * x[i];
        decay[i] = exp_of_negative(-p->rate[i] * dt[i]);
    }
    if (a->d_head > 1 && !a->own_decays && p->rate[0] * dt[0] < SLOW) {
        lost = -expm1f(-p->rate[0] * dt[0]);
        for (int i = 0; i < n; i++)
            decay[i] = 1;
    }
    for (int k = 0; k < a->d_state; k++) {
        float *state = p->state + (size_t)k * channels;
        for (int i = 0; i < n && a->own_decays; i++)
            decay[i] = exp_of_negative(-p->rate[k * n + i] * dt[i]);
        for (int i = 0; i < n; i++) {
            state[i] = state[i] * decay[i] + (given[i] * b[k] - state[i] * lost);
            sum[i] += state[i] * c[k];
        }
    }
    for (int i = 0; i < n; i++)
        out[i] = sum[i] + a->skip[head_of(p, i)] * x[i];
}

/* Channels that share a group and, where heads have several, a head. */
static int span_of(const struct sh_scan *a)
{
    return a->d_head > 1 ? a->d_head : a->n_head / a->n_group;
}

static int parts_of_span(const struct sh_scan *a)
{
    return (span_of(a) + CHANNELS - 1) / CHANNELS;
}

static int parts_of(const struct sh_scan *a)
{
    return a->x.cols / span_of(a) * parts_of_span(a);
}

static void run_part(void *arg, int number)
{
    const struct sh_scan *a = arg;
    int s = number / parts_of(a), i = number % parts_of(a), in_span = i % parts_of_span(a) * CHANNELS;
    struct part p = {.a = a, .first = i / parts_of_span(a) * span_of(a) + in_span, .n = span_of(a) - in_span};
    p.n = p.n < CHANNELS ? p.n : CHANNELS;
    p.state = a->state + (size_t)s * a->state_step + p.first;
    p.rate = xmalloc((size_t)p.n * (size_t)(a->own_decays ? a->d_state : 1) * sizeof *p.rate);
    find_rates(&p);
    for (int row = a->start[s]; row < a->start[s + 1]; row++)
        run_row(&p, row);
    free(p.rate);
}

void CPU_NAME(cpu_scan)(const struct sh_scan *a, int n_threads)
{
    struct sh_scan copy = *a;
    sh_team_each(n_threads, a->n_seq * parts_of(a), run_part, &copy);
}
