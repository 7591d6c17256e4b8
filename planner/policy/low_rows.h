/* SPDX-License-Identifier: Apache-2.0 */
/* How many of the last `window` rows gave each slot less than a limit: a ring of bits, one per slot and row, and the
 * counts. A row does not count for a token that came after it: token t comes with row t. */
#ifndef SH_PLANNER_POLICY_LOW_ROWS_H
#define SH_PLANNER_POLICY_LOW_ROWS_H

#include "planner/policy/policy.h"

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
