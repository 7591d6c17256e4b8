/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that was judged in the live model (shears plan --target-ppl-increase), as what a page answers with. */
#ifndef SH_REPORT_ANSWER_PLAN_H
#define SH_REPORT_ANSWER_PLAN_H

#include "planner/policy/policy.h"
#include "src/report/report.h"

struct sh_answer_plan {
    const char *path;                   /* path of the plan, borrowed                             */
    char policy[48], knobs[SH_POLICY_TEXT], text[SH_MEASURED_NAME];     /* text: the name of those that judged */
    uint64_t hash;                      /* of its budgets                                         */
    int is_met;
    double target, value, bound;        /* increases of the perplexity, as shares                 */
    double confidence;                  /* confidence of the bound                                */
    double share;                       /* part of the cache that is kept                         */
    int sequences, n_token, prefill;    /* judged; tokens of each; of them read before anything is left out */
    char lacks[80];                     /* what an unmet one lacks: "; about 17 more sequences would show it", or "" */
};

/* The first of r->plan that was judged for r->target (0: any) on the traced model. 1: there is one; 0; -1: one cannot
 * be read. */
int sh_answer_plan_find(struct sh_answer_plan *to, const struct sh_report *r, struct sh_err *e);

#endif
