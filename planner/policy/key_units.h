/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of length 1, for likeness by cosine. A key of length 0 stays 0. */
#ifndef SH_PLANNER_POLICY_KEY_UNITS_H
#define SH_PLANNER_POLICY_KEY_UNITS_H

#include "planner/policy/policy.h"

/* 1 / |k| of the slot's key; 0 of a key that is 0. */
float sh_key_scale(const struct sh_cache *c, int slot);

/* sum [d_head] of the cached keys, each at length 1, given each slot's scale. */
void sh_key_sum(const struct sh_cache *c, const float *scale, float *sum);

/* Inner product of n numbers. */
float sh_key_dot(const float *a, const float *b, int n);

#endif
