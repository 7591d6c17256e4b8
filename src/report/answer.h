/* SPDX-License-Identifier: Apache-2.0 */
/* What a page and the demonstration answer first: how small the cache can be, at what measured cost, what that buys on
 * which GPU, on which texts, and what was not shown. In sentences, and as the measured budgets that they rest on. */
#ifndef SH_REPORT_ANSWER_H
#define SH_REPORT_ANSWER_H

#include "src/report/report.h"

struct sh_answer_row {                  /* a measured budget of the policy of the answer          */
    char label[48];                     /* "20 %", "64 tokens", "all"                             */
    double share;                       /* kept of a text of the length that is answered for      */
    double increase, bound;             /* of the perplexity, as shares                           */
    unsigned long long requests;        /* that fit on the GPU; 0: not known                      */
    int is_chosen;
};

struct sh_answer {
    char *small, *buys, *on, *lacks;    /* the sentences; NULL: nothing to say; owned             */
    double target;                      /* the increase that the answer stays within; NaN: none is shown */
    struct sh_answer_row *row;          /* [n_row] from the smallest; the last one is the full cache; owned */
    int n_row;
    unsigned long long full;            /* requests that fit with the full cache                  */
    char gpu[64], policy[64];
};

/* From the first store of trained weights that has evaluations. Without r->target it is the least of 1, 2, 5 and 10 %
 * that some budget is shown to meet. 1: there is an answer, to be cleared; 0: nothing was evaluated; -1. */
int sh_answer_read(struct sh_answer *a, const struct sh_report *r, struct sh_err *e);
void sh_answer_clear(struct sh_answer *a);

#endif
