/* SPDX-License-Identifier: Apache-2.0 */
/* The gated linear recurrence (backend.h, struct sh_lru), channels on threads. */
#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/team.h"

enum { CHANNELS = 64 };                 /* that a thread takes at a time                           */

static const float *row_of(const struct sh_mat *m, int row, int first)
{
    return (const float *)m->at + (size_t)row * m->stride + first;
}

/* A row of n channels. A decay near 1 has few digits left of what is lost: the state loses 1 - exp(u) of itself. */
static void run_row(const struct sh_lru *a, int row, int begins, int first, int n, const float *slope, float *state)
{
    const float *x = row_of(&a->x, row, first), *by = row_of(&a->a, row, first), *in = row_of(&a->b, row, first);
    float *out = (float *)a->out.at + (size_t)row * a->out.stride + first, lost[CHANNELS], decay[CHANNELS];
    for (int i = 0; i < n; i++) {
        float u = slope[i] * logistic(by[i]);
        decay[i] = exp_of_negative(u);
        lost[i] = -expm1f(u);
    }
    for (int i = 0; i < n; i++) {
        float given = logistic(in[i]) * x[i], kept = lost[i] < 0.5f ? state[i] - state[i] * lost[i]
                                                                    : state[i] * decay[i];
        state[i] = begins ? given : kept + sqrtf(lost[i] * (2.0f - lost[i])) * given;
        out[i] = state[i];
    }
}

static void run_part(void *arg, int number)
{
    const struct sh_lru *a = arg;
    int parts = (a->x.cols + CHANNELS - 1) / CHANNELS, s = number / parts, first = number % parts * CHANNELS;
    int n = a->x.cols - first < CHANNELS ? a->x.cols - first : CHANNELS;
    float slope[CHANNELS], *state = a->state + (size_t)s * a->state_step + first;
    for (int i = 0; i < n; i++)
        slope[i] = -8 * softplus(a->rate[first + i]);
    for (int row = a->start[s]; row < a->start[s + 1]; row++) {
        int begins = a->position ? !a->position[row] : row == a->start[s] && !(a->first && a->first[s]);
        run_row(a, row, begins, first, n, slope, state);
    }
}

void CPU_NAME(cpu_lru)(const struct sh_lru *a, int n_threads)
{
    struct sh_lru copy = *a;
    sh_team_each(n_threads, a->n_seq * ((a->x.cols + CHANNELS - 1) / CHANNELS), run_part, &copy);
}
