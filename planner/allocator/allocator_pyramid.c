/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets on a straight line over the layers: pyramid and funnel. */
#include "planner/allocator/allocator.h"

/* More to early layers (PyramidKV, arXiv 2406.02069). */
static const struct sh_knob pyramid_knobs[] = {
    {"beta", 20, 1, 1e6, NULL, "the mean over the last layer's share, both without protected tokens; 1: uniform", 0},
    {0}};

static void share_down(const struct sh_allocation *a, const double *knob, int *budget)
{
    sh_layer_ramp(a, knob[0], SH_RAMP_DOWN, budget);
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
    {"beta", 20, 1, 1e6, NULL, "the mean over the first layer's share, both without protected tokens; 1: uniform", 0},
    {0}};

static void share_up(const struct sh_allocation *a, const double *knob, int *budget)
{
    sh_layer_ramp(a, knob[0], SH_RAMP_UP, budget);
}

const struct sh_allocator sh_allocator_funnel = {
    .name = "funnel",
    .summary = "more to late layers, on a straight line",
    .knobs = funnel_knobs,
    .share = share_up,
};
