/* SPDX-License-Identifier: Apache-2.0 */
/* The same for every head. */
#include "planner/allocator/allocator.h"

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    (void)knob;
    for (int i = 0; i < a->n_layer * a->n_head; i++)
        budget[i] = a->mean;
}

const struct sh_allocator sh_allocator_uniform = {
    .name = "uniform",
    .summary = "the same for every head",
    .monotone = 1,
    .share = share,
};
