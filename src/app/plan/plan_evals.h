/* SPDX-License-Identifier: Apache-2.0 */
/* What evaluations in a store say about the perplexity of a policy under each budget. */
#ifndef SH_APP_PLAN_EVALS_H
#define SH_APP_PLAN_EVALS_H

#include "planner/policy/budget.h"
#include "planner/policy/policy.h"
#include "traces/store.h"

struct sh_plan_eval {                   /* of one budget: the worst of the evaluations with it    */
    struct sh_budget budget;
    int mean_tokens;                    /* of a sequence of n_token                               */
    double ppl, stderr_ppl;
    int sequences;                      /* texts; 0: an older store does not say                  */
    long long tokens;
};

/* Evaluations of the run's model with this policy, these knobs and this prefill, keys and values of 16 bits or more,
 * and the same budget for every head. Those of the full policy count as budget 1.0. New array, by budget in tokens of a
 * sequence of n_token, ascending; *n is 0 if there are none. */
int sh_plan_evals(struct sh_store *s, const struct sh_stored_run *run, const struct sh_policy_spec *policy, int prefill,
                  int n_token, struct sh_plan_eval **out, int *n, struct sh_err *e);

#endif
