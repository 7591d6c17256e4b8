/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting scores, the largest first. */
#ifndef SH_PLANNER_POLICY_DESCENDING_H
#define SH_PLANNER_POLICY_DESCENDING_H

/* x[0 .. n) with 0 <= x < 2, sorted; `spare` [n]. What is out of range lands somewhere. */
void sh_descending(float *x, float *spare, int n);

#endif
