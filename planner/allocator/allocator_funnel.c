/* SPDX-License-Identifier: Apache-2.0 */
/* More to late layers, on a straight line: what Scissorhands (arXiv 2305.17118, section 4.1) argues for, since
 * persistence is lower there. The paper gives no formula; this is the pyramid turned over. */
#include "planner/allocator/apportion.h"

static const struct sh_knob knobs[] = {
    {"beta", 20, 1, 1e6, NULL, "the mean over the first layer's share, both beside what is protected; 1: uniform", 0},
    {0}};

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    sh_layer_ramp(a, knob[0], SH_RAMP_UP, budget);
}

const struct sh_allocator sh_allocator_funnel = {
    .name = "funnel",
    .summary = "more to late layers, on a straight line",
    .knobs = knobs,
    .share = share,
};
