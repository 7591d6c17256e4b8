/* SPDX-License-Identifier: Apache-2.0 */
/* The k-th smallest (from 0) of n > k numbers, which are reordered. None of them is a NaN. */
#ifndef SH_PLANNER_POLICY_QUICKSELECT_H
#define SH_PLANNER_POLICY_QUICKSELECT_H

float sh_quickselect(float *x, int n, int k);

#endif
