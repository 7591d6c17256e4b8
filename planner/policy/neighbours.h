/* SPDX-License-Identifier: Apache-2.0 */
/* The cached tokens in the order of their positions, and scores smoothed over neighbours in the text: the kernel is
 * centred on a token and covers `kernel` positions. A neighbour that was evicted counts as 0 in a mean and not at all
 * in a maximum. */
#ifndef SH_PLANNER_POLICY_NEIGHBOURS_H
#define SH_PLANNER_POLICY_NEIGHBOURS_H

#include "planner/policy/policy.h"

enum sh_pool { SH_POOL_MEAN, SH_POOL_MAX };

struct sh_neighbours {
    int n;
    int *slot, *pos;                    /* [capacity], oldest first; SH_SLOT_SCRATCH              */
};

/* Smooth score[slot] of every cached token at a position < end over such tokens alone, into out[slot]; other entries
 * of `out` are not touched. The kernel is odd. Brings the order up to date. */
void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out);

#endif
