/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over vectors of floats; sums have a fixed order, so that every machine gets the same. */
#ifndef SH_PLANNER_POLICY_VECTORS_H
#define SH_PLANNER_POLICY_VECTORS_H

#include "planner/policy/policy.h"

/* to[i] += factor * x[i], for i < n. */
void sh_add_scaled(float *to, const float *x, float factor, int n);

/* Inner product of n numbers. */
float sh_dot(const float *a, const float *b, int n);

/* 1 / |k| of the slot's key; 0 for a key of zeros. */
float sh_key_scale(const struct sh_cache *c, int slot);

/* The sum [d_head] of the cached keys, each scaled to length 1 by scale[slot]. */
void sh_key_sum(const struct sh_cache *c, const float *scale, float *sum);

/* ---- selecting and sorting ---- */

/* The k-th smallest (from 0) of n > k numbers, which are reordered. None of them is a NaN. */
float sh_quickselect(float *x, int n, int k);

/* Sort x[0 .. n), 0 <= x < 2, the largest first; `spare` [n]. Numbers out of range end up anywhere. */
void sh_descending(float *x, float *spare, int n);

#endif
