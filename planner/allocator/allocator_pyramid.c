/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets on a straight line over the layers: pyramid and funnel. */
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

/* As PyramidKV has it: without the protected tokens, the smallest layer gets U / beta and the largest 2 U - U / beta,
 * where U is the mean without them. The step is real; PyramidKV's own code cuts it to whole tokens, which loses the
 * total and lets budgets shrink when the mean grows. */
static void ramp(const struct sh_allocation *a, double beta, int is_down, int *budget)
{
    double *weight = xcalloc((size_t)a->n_layer, sizeof *weight), last = 1 / beta, first = 2 - last;
    for (int l = 0; l < a->n_layer; l++) {
        int at = is_down ? l : a->n_layer - 1 - l;
        weight[l] = a->n_layer > 1 ? first + (last - first) * at / (a->n_layer - 1) : 1;
    }
    sh_layer_weights(a, weight, a->floor - 1, budget);
    free(weight);
}

/* More to early layers (PyramidKV, arXiv 2406.02069). */
static const struct sh_knob pyramid_knobs[] = {
    {"beta", 20, 1, 1e6, NULL, "mean / last layer's share, both without protected tokens; 1: uniform", 0},
    {0}};

static void share_down(const struct sh_allocation *a, const double *knob, int *budget)
{
    ramp(a, knob[0], 1, budget);
}

const struct sh_allocator sh_allocator_pyramid = {
    .name = "pyramid",
    .summary = "more to early layers, on a straight line",
    .knobs = pyramid_knobs,
    .share = share_down,
};

/* More to late layers: what Scissorhands (arXiv 2305.17118, section 4.1) argues for, since persistence is lower there.
 * The paper gives no formula; this is the pyramid turned over. */
static const struct sh_knob funnel_knobs[] = {
    {"beta", 20, 1, 1e6, NULL, "mean / first layer's share, both without protected tokens; 1: uniform", 0},
    {0}};

static void share_up(const struct sh_allocation *a, const double *knob, int *budget)
{
    ramp(a, knob[0], 0, budget);
}

const struct sh_allocator sh_allocator_funnel = {
    .name = "funnel",
    .summary = "more to late layers, on a straight line",
    .knobs = funnel_knobs,
    .share = share_up,
};
