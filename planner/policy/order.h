/* SPDX-License-Identifier: Apache-2.0 */
/* Selecting and sorting floats. */
#ifndef SH_PLANNER_POLICY_ORDER_H
#define SH_PLANNER_POLICY_ORDER_H

/* The k-th smallest (from 0) of n > k numbers, which are reordered. None of them is a NaN. */
float sh_quickselect(float *x, int n, int k);

/* Sort x[0 .. n), 0 <= x < 2, the largest first; `spare` [n]. Numbers out of range end up anywhere. */
void sh_descending(float *x, float *spare, int n);

#endif
