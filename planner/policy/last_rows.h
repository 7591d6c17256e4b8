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

/* Rows that the ring holds now; row i of them, in no order. */
int sh_last_rows_n(const struct sh_last_rows *r, int window);
const float *sh_last_rows_row(const struct sh_last_rows *r, const struct sh_cache *c, int i);

#endif
