/* SPDX-License-Identifier: Apache-2.0 */
/* One row's walk down a list of budgets (budget_list.h): every place gets the row's score of its token, and the next
 * token passes down. Both need the score of the token at every place, so it is fetched once. */
#ifndef SH_PLANNER_REPLAY_LIST_WALK_H
#define SH_PLANNER_REPLAY_LIST_WALK_H

#include "planner/policy/budget_list.h"
#include "planner/replay/replay_row.h"

struct sh_list_row {                    /* what all walks of a row share */
    const int64_t *pair;                /* [1 + n_token] budget_list.h's; the caller's half is the row, or its mass */
    const int64_t *rest;                /* [1 + n_token] no_sink above, pivotal below; NULL with one query head, */
    float mass, no_sink, pivotal;       /* … whose shares are these, times the row (replay_row.h) …              */
    float limit;                        /* … pivotal of keys above it …                                          */
    int self;                           /* … and no_sink of none that is a sink, or the query's own token, + 1   */
    int64_t *seen;                      /* [SH_LIST_RUN] space: rest, by place                                   */
};

/* lately[f], by place, gets the row's figure f. next: the token that comes, or -1. */
void sh_list_walk(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row, int next);

/* What it does on machines without AVX-512: the same, bit by bit. */
void sh_list_walk_portable(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row,
                           int next);

#endif
