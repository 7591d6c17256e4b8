/* SPDX-License-Identifier: Apache-2.0 */
/* One head of one sequence through all policies and budgets of a request, each the cheapest way: budgets of a stack
 * policy on recorded rows in one walk (replay_stack.h), the bound in another (replay_bound.h), the rest cache by cache
 * (replay.h). What is asked for decides, never the result: the figures are the same either way. */
#ifndef SH_PLANNER_REPLAY_PASS_H
#define SH_PLANNER_REPLAY_PASS_H

#include "planner/replay/replay.h"

struct sh_replay_pass;

/* cell[i * n_budget + b] is policy i under budget b; its spec is the same for all b, or NULL where the budget is to be
 * left out. `each_step`: kept sets are watched, or the output error is wanted, so that every cache is simulated. */
struct sh_replay_pass *sh_replay_pass_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell,
                                          int n_policy, int n_budget, int each_step);
void sh_replay_pass_free(struct sh_replay_pass *p);     /* NULL is fine */

void sh_replay_pass_set_watch(struct sh_replay_pass *p, sh_replay_watch *fn, void *to);
int sh_replay_pass_row(struct sh_replay_pass *p, int t, int first_key, const float *const *row, struct sh_err *e);
void sh_replay_pass_sums(struct sh_replay_pass *p, int cell, struct sh_replay_sums *out);

#endif
