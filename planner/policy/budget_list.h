/* SPDX-License-Identifier: Apache-2.0 */
/* The kept sets of all budgets at once. When every token has one rank that does not depend on the budget, and the token
 * of least rank is evicted for each new one, the set of budget B is a subset of that of B + 1 (Mattson et al. 1970, for
 * stacks of pages). So one list holds them all: place b (from 0) has the token that is kept from budget b + 1 on, and
 * the set of budget B is the first B places.
 *
 * A new token enters in front and never leaves at once. Passing down the list, the larger of the carried and the
 * present token stays, the smaller is carried on: the new place b is max(old place b, min(old places before b)), a
 * prefix minimum.
 *
 * Tokens are written as position + 1; 0 is an empty place. A token's pair holds its rank in the upper 32 bits and the
 * caller's float in the lower; pair[0] must be SH_PAIR_EMPTY. Of equal rank the older leaves first. */
#ifndef SH_PLANNER_POLICY_BUDGET_LIST_H
#define SH_PLANNER_POLICY_BUDGET_LIST_H

#include <stdint.h>

#define SH_PAIR_EMPTY ((int64_t)INT32_MIN * ((int64_t)1 << 32))

enum { SH_LIST_BLOCK = 64, SH_LIST_RUN = 8 * SH_LIST_BLOCK };   /* places                                 */

struct sh_budget_list {
    int32_t *token;                     /* [room] position + 1; at sh_budget_list_at(place)       */
    int64_t *pair;                      /* [SH_LIST_RUN] of the run in hand                       */
    int n, most, room;                  /* places in use, at most, allocated; tokens after `most` */
                                        /* have left every budget                                 */
};

void sh_budget_list_begin(struct sh_budget_list *l, int most);
void sh_budget_list_end(struct sh_budget_list *l);

/* Index of place b in the arrays. A block of 64 places is written as eight columns of eight, one below the other, so
 * that eight neighbours in memory are eight columns and are processed together. */
static inline int sh_budget_list_at(int b)
{
    return (b & ~63) | (b & 7) << 3 | (b >> 3 & 7);
}

/* Places in whole blocks, the one that the next token adds included. */
int sh_budget_list_whole(const struct sh_budget_list *l);

/* Lists are processed in runs of at most SH_LIST_RUN places, whole blocks, from the front, so that the pairs fetched
 * into l->pair stay in the cache. Token t comes: its key is carried into the first run and from each run into the next;
 * the caller then counts it in n. Keys are ranks above, tokens below; token and pair [n] are those of the run. */
int64_t sh_budget_list_comes(int t);
int64_t sh_budget_list_pass(int32_t *token, const int64_t *pair, int64_t carried, int n);

/* Fills an empty list: token t comes when tokens [first, t) are cached, and all but the best leave at once. */
void sh_budget_list_start(struct sh_budget_list *l, int t, int first, const int64_t *pair);

#endif
