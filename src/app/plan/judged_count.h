/* SPDX-License-Identifier: Apache-2.0 */
/* How many sequences a plan is judged on. This is decided from the results of the search, before any judged sequence is
 * read. */
#ifndef SH_APP_PLAN_JUDGED_COUNT_H
#define SH_APP_PLAN_JUDGED_COUNT_H

enum { SH_JUDGED_LEAST = 12 };          /* with fewer sequences, nothing is said to be shown      */

struct sh_seen_budget {                 /* a budget, and what the searched sequences lost under it */
    int mean;                           /* tokens a head                                          */
    double value;                       /* mean of the figure that the target bounds, in its unit */
    double spread;                      /* its standard deviation over sequences                  */
};

/* A bound over n sequences holds at a budget where the value is t spread / sqrt(n) below the target. Returns the
 * smallest n, from least to most, with which the bound holds at a budget a tenth above the one where the value itself
 * meets the target: a plan then needs about a tenth more tokens than if the mean were known. Between budgets, value and
 * spread are straight lines in the logarithm of the mean. seen [n] in any order; it is sorted. `least` if not even the
 * largest budget's value meets the target or nothing was seen; `most` if no number would do. */
int sh_judged_count(struct sh_seen_budget *seen, int n, double target, double confidence, int least, int most);

#endif
