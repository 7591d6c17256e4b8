/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over the rows of one head of one sequence, for every budget at once: of policies whose ranking of tokens,
 * from recorded rows, does not depend on what else is kept (sh_policy_is_stack). The policy runs once, over a cache
 * that keeps everything (slot = position); its scores order a list whose first B tokens are the kept set of budget B
 * (budget_list.h). Every figure of replay.h that is a sum over the kept tokens then is a running sum down the list, and
 * only the share that each place gets must be added up: a row costs one pass over the list, whatever the number of
 * budgets.
 *
 * Same rows, same order of things, same kept sets as sh_replay with SH_ROWS_RECORDED. Before `prefill` nothing leaves;
 * then all budgets fall to their size at once. In a windowed layer the list ends with the window: what is after it is
 * dead. The output error is not such a sum and is left out. */
#ifndef SH_PLANNER_REPLAY_STACK_H
#define SH_PLANNER_REPLAY_STACK_H

#include "planner/replay/replay.h"

struct sh_replay_stack;

/* 1: one pass gives all budgets. 0: they must be simulated one by one, because rows are renormalised over what is kept,
 * several tokens leave at once, all are kept, or a token's score depends on the other kept tokens. */
int sh_replay_stack_can(const struct sh_replay_setup *setup, const struct sh_policy_spec *spec);

/* Policies for which sh_replay_stack_can holds, on the same rows. The specs must outlive it, setup->error_rows is not
 * looked at; a policy that needs the future needs setup->received. */
struct sh_replay_stack *sh_replay_stack_new(const struct sh_replay_setup *setup,
                                            const struct sh_policy_spec *const *spec, int n_policy);
void sh_replay_stack_free(struct sh_replay_stack *s);           /* NULL is fine */

/* As sh_replay_row. */
int sh_replay_stack_row(struct sh_replay_stack *s, int t, int first_key, const float *const *row, struct sh_err *e);

/* The sums so far of policy i at a budget > sh_policy_protected: what sh_replay_sums has for such a cell, but for the
 * output error. */
void sh_replay_stack_sums(struct sh_replay_stack *s, int policy, int budget, struct sh_replay_sums *out);

#endif
