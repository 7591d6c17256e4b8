/* SPDX-License-Identifier: Apache-2.0 */
/* More to early layers, on a straight line (PyramidKV, arXiv 2406.02069). */
#include "planner/allocator/apportion.h"

static const struct sh_knob knobs[] = {
    {"beta", 20, 1, 1e6, NULL, "the mean over the last layer's share, both beside what is protected; 1: uniform", 0},
    {0}};

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    sh_layer_ramp(a, knob[0], SH_RAMP_DOWN, budget);
}

const struct sh_allocator sh_allocator_pyramid = {
    .name = "pyramid",
    .summary = "more to early layers, on a straight line",
    .knobs = knobs,
    .share = share,
};
