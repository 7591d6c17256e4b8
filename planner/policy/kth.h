/* SPDX-License-Identifier: Apache-2.0 */
/* The k-th smallest (from 0) of n > k numbers, which are reordered. None of them is a NaN. */
#ifndef SH_PLANNER_POLICY_KTH_H
#define SH_PLANNER_POLICY_KTH_H

float sh_kth(float *x, int n, int k);

#endif
