/* SPDX-License-Identifier: Apache-2.0 */
/* What a page and the demonstration answer first: how small the cache can be, at what measured cost, what that buys on
 * which GPU, on which texts, and what was not shown. In sentences, and as the measured budgets that they rest on.
 * A plan that was judged for the target (shears plan --target-ppl-increase) is the answer; without one, the smallest
 * evaluated budget is. */
#ifndef SH_REPORT_ANSWER_H
#define SH_REPORT_ANSWER_H

#include "src/report/report.h"

struct sh_answer_row {                  /* the plan, or a budget with the policy of the lowest bound */
    char label[48];                     /* "20 %", "64 tokens", "plan, 20 %", "all"               */
    char *policy;                       /* that keeps it, with knobs; NULL: all is kept; owned     */
    double share;                       /* kept of a text of the length that is answered for      */
    double increase, bound;             /* increase of the perplexity and its bound, as shares    */
    unsigned long long requests;        /* requests that fit on the GPU; 0: not known             */
    double bytes;                       /* cache of a request                                     */
    unsigned long long by_layer, alike; /* of a plan, requests that fit if all heads of a layer have the largest size
                                         * among them; if all heads of all layers do; 0: not known */
    int is_chosen;
};

struct sh_answer {
    char *small, *buys, *on, *lacks;    /* the sentences; NULL: nothing to say; owned             */
    char *bars_on;                      /* next to a plan: what the other rows were measured on, "24 sequences of …";
                                         * NULL: no plan, or no other rows; owned                 */
    double same, same_bound;            /* the plan's increase and bound on the texts of `bars_on`; NaN: not known */
    char *how;                          /* what evicts, what the plan does, what is needed without it; owned */
    double target;                      /* the increase that the answer stays within; NaN: none is shown */
    struct sh_answer_row *row;          /* [n_row] from the smallest; the last one is the full cache; owned */
    int n_row;
    unsigned long long full;            /* requests that fit with the full cache                  */
    double full_bytes;                  /* cache of one of these                                  */
    long long length;                   /* tokens of a request                                    */
    char gpu[64];
    int is_planned;                     /* a plan answers                                         */
    double confidence;                  /* confidence of the bounds                               */
    int sequences;                      /* sequences that the answer was measured on; 0: errors are over tokens */
};

/* From the first of r->plan that was judged for r->target, and from the first store of trained weights that has
 * evaluations. Without a plan and r->target it is the least of 1, 2, 5 and 10 %
 * that some budget is shown to meet. 1: there is an answer, to be cleared; 0: nothing was evaluated; -1. */
int sh_answer_read(struct sh_answer *a, const struct sh_report *r, struct sh_err *e);
void sh_answer_clear(struct sh_answer *a);

#endif
