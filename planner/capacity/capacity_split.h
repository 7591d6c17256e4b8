/* SPDX-License-Identifier: Apache-2.0 */
/* What each GPU of a group holds (capacity.h says how a group is divided). */
#ifndef SH_PLANNER_CAPACITY_SPLIT_H
#define SH_PLANNER_CAPACITY_SPLIT_H

#include "planner/capacity/capacity.h"

/* First layer of stage i of pp; i = pp: one past the last. */
int sh_split_first(int n_layer, int pp, int i);

/* All that a stage's GPUs hold at a length. */
void sh_split_stage(const struct sh_capacity_ask *a, int i, uint64_t length, struct sh_capacity_stage *out);

/* The cache alone, for searches over lengths: what one sequence takes, the draft's included. */
struct sh_kv_bytes sh_split_cache(const struct sh_capacity_ask *a, int i, uint64_t length);

/* Weights on one GPU, from the parts of a stage. */
uint64_t sh_split_weights(const struct sh_kv_parts *p, const struct sh_kv_facts *f, int tp, int ep);

#endif
