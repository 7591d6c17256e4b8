/* SPDX-License-Identifier: Apache-2.0 */
/* Real shares as whole tokens that sum to a total. Head i should get base + lambda * weight[i], not below `floor`, not
 * above `most`; lambda is what makes the sum right: what the limits take from one head goes to the others by their
 * weights. Then each share is rounded down, and the tokens that are left go to the largest remainders, of equal ones to
 * the first. */
#ifndef SH_PLANNER_ALLOCATOR_APPORTION_H
#define SH_PLANNER_ALLOCATOR_APPORTION_H

#include "planner/allocator/allocator.h"

/* weight [n] >= 0 (a zero is a billionth of the largest; all 0: equal shares); n * floor <= total <= n * most. */
void sh_apportion(const double *weight, int n, double base, int floor, int most, long long total, int *out);

/* Every head of a layer by the layer's weight. */
void sh_layer_weights(const struct sh_allocation *a, const double *weight, double base, int *budget);

enum { SH_RAMP_DOWN, SH_RAMP_UP };      /* from the first layer to the last */

/* Budgets on a straight line over the layers, as PyramidKV has it: without the protected tokens, the smallest layer
 * gets U / beta and the largest 2 U - U / beta, where U is the mean without them. The step is real; PyramidKV's own
 * code cuts it to whole tokens, which loses the total and lets budgets shrink when the mean grows. */
void sh_layer_ramp(const struct sh_allocation *a, double beta, int direction, int *budget);

#endif
