/* SPDX-License-Identifier: Apache-2.0 */
/* Of the last `window` rows, how many gave each slot less than a limit: a ring of bits, one a slot and
 * row, and the counts beside it. A row counts nothing for a token that came after it. */
#ifndef SH_PLANNER_POLICY_LOW_ROWS_H
#define SH_PLANNER_POLICY_LOW_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "planner/policy/carry.h"

struct sh_low_rows {
    int words, window;                  /* words: of 32 slots                                     */
    int n_row;                          /* seen so far                                            */
    int32_t *low;                       /* [capacity] low rows within the window, by slot         */
    int32_t *born;                      /* [capacity] the row that a slot's token came with       */
    uint32_t *bits;                     /* [window + 1][words]: row r in r % (window + 1)         */
};

/* The memory is the caller's, zeroed, and at least aligned to 4 bytes. */
size_t sh_low_rows_bytes(int capacity, int window);
size_t sh_low_rows_ring_bytes(int capacity, int window);        /* of them the bits */
void sh_low_rows_place(struct sh_low_rows *r, void *memory, int capacity, int window);

void sh_low_rows_admit(struct sh_low_rows *r, int slot);

/* A row over n slots; those with pos < 0 are free. */
void sh_low_rows_add(struct sh_low_rows *r, const float *row, const int *pos, int n, float limit);

/* r has just been placed, with the same window. */
void sh_low_rows_carry(struct sh_low_rows *r, const struct sh_low_rows *from, const struct sh_carry *c);

#endif
