/* SPDX-License-Identifier: Apache-2.0 */
/* The last `window` attention rows of a cache, by slot. A row from before a token came holds 0 for it. */
#ifndef SH_PLANNER_POLICY_LAST_ROWS_H
#define SH_PLANNER_POLICY_LAST_ROWS_H

#include <stddef.h>

#include "planner/policy/carry.h"

struct sh_last_rows {
    int capacity, window;
    int n_row;                          /* seen so far                                            */
    float *at;                          /* [window][capacity], a ring                             */
    double *sum;                        /* [capacity] over the ring                               */
};

/* The memory is the caller's, zeroed, and aligned to 8 bytes. */
size_t sh_last_rows_bytes(int capacity, int window);
void sh_last_rows_place(struct sh_last_rows *r, void *memory, int capacity, int window);

void sh_last_rows_admit(struct sh_last_rows *r, int slot);
void sh_last_rows_add(struct sh_last_rows *r, const float *row, int n);

/* Rows that the ring holds now; row i of them, in no order. */
int sh_last_rows_n(const struct sh_last_rows *r);
const float *sh_last_rows_row(const struct sh_last_rows *r, int i);

/* r has just been placed, with the same window. */
void sh_last_rows_carry(struct sh_last_rows *r, const struct sh_last_rows *from, const struct sh_carry *c);

#endif
