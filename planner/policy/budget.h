/* SPDX-License-Identifier: Apache-2.0 */
/* A budget as people write it: tokens per KV head when it is a whole number ("17"), a share of the sequence when it has
 * a point ("0.2") or a percent sign ("20%"). */
#ifndef SH_PLANNER_POLICY_BUDGET_H
#define SH_PLANNER_POLICY_BUDGET_H

#include "src/base/err.h"

enum { SH_MAX_BUDGETS = 1024 };

struct sh_budget {
    int tokens;                         /* 0: a share                                             */
    double share;                       /* part of the text, in (0, 1]                            */
};

/* "0.1,0.2,64", and "0.05..1.0/20": twenty, evenly spaced, both ends included. */
int sh_budget_parse(const char *text, struct sh_budget *out, int *n, struct sh_err *e);

/* In a sequence of n_token; a share is rounded to the nearest token, at least 1. */
int sh_budget_tokens(const struct sh_budget *b, int n_token);

enum { SH_BUDGET_TEXT = 32 };
const char *sh_budget_text(const struct sh_budget *b, char text[SH_BUDGET_TEXT]);

#endif
