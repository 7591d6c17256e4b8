/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets on a straight line over the layers, as PyramidKV has it: beside what is protected the smallest
 * layer gets U / beta and the largest 2 U - U / beta, U the mean beside what is protected. The step is real;
 * PyramidKV's own code cuts it to whole tokens, which loses the total and lets budgets shrink when the mean
 * grows. */
#ifndef SH_PLANNER_ALLOCATOR_LAYER_RAMP_H
#define SH_PLANNER_ALLOCATOR_LAYER_RAMP_H

#include "planner/allocator/allocator.h"

enum { SH_RAMP_DOWN, SH_RAMP_UP };      /* from the first layer to the last */

void sh_layer_ramp(const struct sh_allocation *a, double beta, int direction, int *budget);

/* Every head of a layer by the layer's weight; base as in apportion.h. */
void sh_layer_weights(const struct sh_allocation *a, const double *weight, double base, int *budget);

static inline long long sh_allocation_total(const struct sh_allocation *a)
{
    return (long long)a->n_layer * a->n_head * a->mean;
}

#endif
