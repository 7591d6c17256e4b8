/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest mean budget whose replay meets a target: a grid of budgets in one pass over the trace, then ever finer
 * grids between the last that fails and the first that meets it, down to one token. Quality is assumed to rise with
 * the budget between those two; the result is measured: the budget meets the target, and one token less does not. The
 * replay does what the plan would do: the allocator solves for the longest sequence, and shorter ones get the same
 * fractions (sh_plan_scale). */
#ifndef SH_APP_PLAN_SEARCH_H
#define SH_APP_PLAN_SEARCH_H

#include "src/app/plan/allot.h"

struct sh_plan_search {
    enum sh_replay_figure figure;
    int at_least;                       /* 1: the figure should be so large at least, 0: at most  */
    double target;
    const char *what;                   /* the figure, for messages: "a kept mass"                 */
};

struct sh_plan_found {
    int tokens;                         /* mean budget, on the longest sequence                   */
    double value;                       /* the figure there                                       */
    int smaller_tokens;                 /* the next smaller budget; 0: none, it is the smallest   */
    double smaller_value;
    int n_pass, n_budget;               /* passes over the trace, budgets replayed                */
};

/* q has one policy and what else shapes a replay; `a` is open. -1: the full cache does not meet the target. */
int sh_plan_search(const struct sh_plan_search *p, const struct sh_allot *a, const struct sh_replay_request *q,
                   struct sh_store *s, struct sh_plan_found *out, struct sh_err *e);

#endif
