/* SPDX-License-Identifier: Apache-2.0 */
/* Real shares as whole tokens that sum to a total. Head i should get base + lambda * weight[i], not below
 * `floor`, not above `most`; lambda is what makes the sum right: what the limits take from one head goes to
 * the others by their weights. Then each share is rounded down, and the tokens that are left go to the largest
 * remainders, of equal ones to the first. */
#ifndef SH_PLANNER_ALLOCATOR_APPORTION_H
#define SH_PLANNER_ALLOCATOR_APPORTION_H

/* weight [n] >= 0, not all 0 (a zero counts as a billionth of the largest); n * floor <= total <= n * most. */
void sh_apportion(const double *weight, int n, double base, int floor, int most, long long total, int *out);

#endif
