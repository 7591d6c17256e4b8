/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions, a row at a time. */
#include "kernels/cpu/variant.h"
#include "src/base/team.h"

static int position_of(const struct sh_rotary *a, int row)
{
    int low = 0, high = a->n_seq;                       /* start[low] <= row < start[high] */
    if (a->position)
        return a->position[row];
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (a->start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return row - a->start[low] + (a->first ? a->first[low] : 0);
}

static void turn_halves(float *restrict x, float *restrict y, const float *c, const float *s, int n)
{
    for (int j = 0; j < n; j++) {
        float a = x[j], b = y[j];
        x[j] = a * c[j] - b * s[j];
        y[j] = b * c[j] + a * s[j];
    }
}

static void turn_neighbours(float *restrict x, const float *c, const float *s, int n)
{
    for (int j = 0; j < n; j++) {
        float a = x[2 * j], b = x[2 * j + 1];
        x[2 * j] = a * c[j] - b * s[j];
        x[2 * j + 1] = b * c[j] + a * s[j];
    }
}

static void turn_row(void *arg, int i)
{
    const struct sh_rotary *a = arg;
    int half = a->n_rot / 2, row = a->start[0] + i;
    size_t at = (size_t)position_of(a, row) * (size_t)half;
    float *x = (float *)a->x.at + (size_t)row * a->x.stride;
    for (int head = 0; head < a->x.cols / a->d_head; head++, x += a->d_head)
        if (a->pairs == SH_ROTARY_HALVES)
            turn_halves(x, x + half, a->cos + at, a->sin + at, half);
        else
            turn_neighbours(x, a->cos + at, a->sin + at, half);
}

void CPU_NAME(cpu_rotary)(const struct sh_rotary *a, int n_threads)
{
    struct sh_rotary copy = *a;
    sh_team_each(n_threads, a->start[a->n_seq] - a->start[0], turn_row, &copy);
}
