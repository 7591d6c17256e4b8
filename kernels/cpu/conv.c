/* SPDX-License-Identifier: Apache-2.0 */
/* The causal convolution of channels (backend.h, struct sh_conv), channels on threads. */
#include <stdlib.h>

#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/team.h"

enum { CHANNELS = 64 };                 /* that a thread takes at a time                           */

/* Channels [first, last). seen: the last `kernel` rows, row t in t % kernel; first those of the state. */
static void convolve(const struct sh_conv *a, int sequence, int first, int last)
{
    int n_row = a->start[sequence + 1] - a->start[sequence], taps = a->kernel, width = last - first;
    size_t n = (size_t)a->x.cols, bytes = (size_t)width * sizeof(float);
    float *seen = xmalloc((size_t)taps * bytes), *state = a->state + (size_t)sequence * a->state_step + first;
    for (int i = 0; i < taps - 1; i++)
        memcpy(seen + i * width, state + (size_t)i * n, bytes);
    for (int t = 0; t < n_row; t++) {
        float sum[CHANNELS] = {0}, *row = (float *)a->x.at + (size_t)(a->start[sequence] + t) * a->x.stride + first;
        memcpy(seen + (t + taps - 1) % taps * width, row, bytes);
        if (a->bias)
            memcpy(sum, a->bias + first, bytes);
        for (int j = 0; j < taps; j++)
            for (int c = 0; c < width; c++)
                sum[c] += seen[(t + j) % taps * width + c] * a->weight[(first + c) * taps + j];
        activate(row, sum, a->act, (size_t)width);
    }
    for (int i = 0; i < taps - 1; i++)
        memcpy(state + (size_t)i * n, seen + (n_row + i) % taps * width, bytes);
    free(seen);
}

static void convolve_some(void *arg, int i)
{
    const struct sh_conv *a = arg;
    int first = i * CHANNELS, last = a->x.cols - first < CHANNELS ? a->x.cols : first + CHANNELS;
    for (int s = 0; s < a->n_seq; s++)
        convolve(a, s, first, last);
}

void CPU_NAME(cpu_conv)(const struct sh_conv *a, int n_threads)
{
    struct sh_conv copy = *a;
    sh_team_each(n_threads, (a->x.cols + CHANNELS - 1) / CHANNELS, convolve_some, &copy);
}
