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

/* ---- rows below a limit ---- */

/* How many of the last `window` rows gave each slot less than a limit: a ring of bits, one per slot and row, and the
 * counts. A row does not count for a token that came after it: token t comes with row t. */

struct sh_low_rows {
    int n_row;                          /* seen so far                                            */
    int32_t *low;                       /* [capacity] low rows within the window, by slot         */
    uint32_t *bits;                     /* [window + 1, words of 32 slots]: row r in r % (window + 1) */
};

/* The rows that count: a text has no more rows than tokens. */
int sh_low_rows_window(double knob, int n_token);

/* A row over the cache's slots. */
void sh_low_rows_add(struct sh_low_rows *r, const struct sh_cache *c, const float *row, int window, float limit);

#endif
