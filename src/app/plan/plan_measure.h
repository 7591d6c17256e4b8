/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan's budgets cost: the replay of a plan, the search for the smallest budget that meets a target, and
 * evaluations in a store. */
#ifndef SH_APP_PLAN_MEASURE_H
#define SH_APP_PLAN_MEASURE_H

#include "src/app/plan/allot.h"
#include "src/app/plan/plan_file.h"

/* ---- replay: plan_measure.c ---- */

/* Fills the fields of the model. */
void sh_plan_name(struct sh_plan *p, const struct sh_stored_run *run);

/* Adds a figure that was measured on the runs of a store, without interval. At most SH_PLAN_EVIDENCE. */
struct sh_plan_evidence *sh_plan_add_evidence(struct sh_plan *p, const char *metric, double value, int sequences,
                                              long long tokens, int run, const char *store);

/* Replays the plan's policy, prefill and budgets (sh_plan_tokens) and adds the figures to the evidence. q: the run,
 * threads, seed, and at every how many rows the output error is measured. */
int sh_plan_measure(struct sh_plan *p, const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e);

/* ---- search: plan_search.c ---- */

struct sh_plan_search {
    enum sh_replay_figure figure;
    int at_least;                       /* 1: the figure must be at least the target, 0: at most  */
    double target;
    const char *what;                   /* the figure, for messages: "a kept mass"                 */
};

struct sh_plan_found {
    int tokens;                         /* mean budget, on the longest sequence                   */
    double value;                       /* the figure there                                       */
    int smaller_tokens;                 /* the next smaller budget; 0: there is none              */
    double smaller_value;
    int n_pass, n_budget;               /* passes over the trace, budgets replayed                */
};

/* The smallest mean budget whose replay meets a target: a grid of budgets in one pass over the trace, then ever finer
 * grids between the last that fails and the first that meets it, down to one token. Quality is assumed to rise with
 * the budget between those two; the result is measured: the budget meets the target, and one token less does not. The
 * replay does what the plan would do: the allocator solves for the longest sequence, and shorter ones get the same
 * fractions (sh_plan_scale).
 *
 * q has one policy, and the other settings of a replay; `a` is open. -1: the full cache does not meet the target. */
int sh_plan_search(const struct sh_plan_search *p, const struct sh_allot *a, const struct sh_replay_request *q,
                   struct sh_store *s, struct sh_plan_found *out, struct sh_err *e);

/* ---- evaluations: plan_evals.c ---- */

struct sh_plan_eval {                   /* evaluation of one budget: the worst of the evaluations with it */
    struct sh_budget budget;
    int mean_tokens;                    /* mean budget of a sequence of n_token                   */
    double ppl, stderr_ppl;
    int sequences;                      /* texts; 0: an older store does not say                  */
    long long tokens;
    struct sh_measured on;
};

struct sh_plan_ask {
    const struct sh_stored_run *run;
    const struct sh_policy_spec *policy;
    int prefill, n_token;
    const char *measured_on;            /* the text; NULL: the only one                           */
};

/* Evaluations of the run's model on one text with this policy, these knobs and this prefill, keys and values of 16 bits
 * or more, and the same budget for every head. Those of the full policy count as budget 1.0. New array, by budget in
 * tokens of a sequence of n_token, ascending. -1: the policy was never evaluated (e names those that were), or on
 * several texts. */
int sh_plan_evals(struct sh_store *s, const struct sh_plan_ask *a, struct sh_plan_eval **out, int *n, struct sh_err *e);

#endif
