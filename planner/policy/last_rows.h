/* SPDX-License-Identifier: Apache-2.0 */
/* The last `window` attention rows of a cache, by slot. A row from before a token came holds 0 for it. */
#ifndef SH_PLANNER_POLICY_LAST_ROWS_H
#define SH_PLANNER_POLICY_LAST_ROWS_H

#include "planner/policy/policy.h"

struct sh_last_rows {
    int n_row;                          /* seen so far                                            */
    float *at;                          /* [window, capacity], a ring                             */
    double *sum;                        /* [capacity] over the ring                               */
};

void sh_last_rows_add(struct sh_last_rows *r, const struct sh_cache *c, const float *row, int window);

/* The number of rows in the ring; row i of them, in no order. */
int sh_last_rows_n(const struct sh_last_rows *r, int window);
const float *sh_last_rows_row(const struct sh_last_rows *r, const struct sh_cache *c, int i);

/* The cached tokens in the order of their positions, and scores smoothed over neighbours in the text: the kernel is
 * centred on a token and covers `kernel` positions. A neighbour that was evicted counts as 0 in a mean and not at all
 * in a maximum. */
enum sh_pool { SH_POOL_MEAN, SH_POOL_MAX };

struct sh_neighbours {
    int n;
    int *slot, *pos;                    /* [capacity], oldest first; SH_SLOT_SCRATCH              */
};

/* Smooth score[slot] of every cached token at a position < end over such tokens alone, into out[slot]; other entries of
 * `out` are not touched. The kernel is odd. Brings the order up to date. */
void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out);

#endif
