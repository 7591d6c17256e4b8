/* SPDX-License-Identifier: Apache-2.0 */
/* The cached tokens in the order of their positions, and scores smoothed over neighbours in the text:
 * of a token's `kernel` positions centred on it, what is cached. A neighbour that has left counts as 0
 * in a mean and not at all in a maximum. */
#ifndef SH_PLANNER_POLICY_NEIGHBOURS_H
#define SH_PLANNER_POLICY_NEIGHBOURS_H

#include "planner/policy/policy.h"

enum sh_pool { SH_POOL_MEAN, SH_POOL_MAX };

struct sh_neighbours {
    int n;
    int *slot, *pos;                    /* [capacity], oldest first                               */
};

/* The newest token; those that have left since are forgotten. */
void sh_neighbours_admit(struct sh_neighbours *o, const struct sh_cache *c, int slot);

/* out[slot] of every cached token at a position < end, smoothed over such tokens alone. Others are not
 * touched. The kernel is odd. */
void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out);

/* Those that come along, in their new slots. */
void sh_neighbours_move(struct sh_neighbours *o, const struct sh_neighbours *from, const struct sh_move *m);

#endif
