/* SPDX-License-Identifier: Apache-2.0 */
/* The same budget for every head. */
#include "planner/allocator/allocator.h"

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    (void)knob;
    for (int i = sh_allocation_first(a, a->n_layer) - 1; i >= 0; i--)
        budget[i] = a->mean;
}

const struct sh_allocator sh_allocator_uniform = {
    .name = "uniform",
    .summary = "the same for every head",
    .monotone = 1,
    .share = share,
};
