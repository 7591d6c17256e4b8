/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided bounds of a mean over sequences: how large a figure can be on texts like those that it was measured on. */
#ifndef SH_APP_PLAN_BOUND_H
#define SH_APP_PLAN_BOUND_H

struct sh_mean_bound {
    int n;                              /* sequences that count                                   */
    double mean;                        /* sum of x / sum of w; NaN: none counts                  */
    double error;                       /* standard error over sequences; NaN with fewer than two */
    double low, high;                   /* each is passed with a probability of 1 - confidence    */
};

/* x [n]: sums over each sequence, w [n] > 0 (others do not count): what they are a mean over, such as tokens.
 *
 *     m = sum(x) / sum(w);  r = (x - m w) / mean(w);  error = sqrt(sum(r^2) / (n - 1) / n)
 *     low = m - t error, with the t of n - 1 degrees of freedom
 *     high = m - T error: T = -t, corrected for skewness g = mean(r^3) / mean(r^2)^1.5 where that is positive
 *
 * A few sequences with large losses skew the distribution; if none of them is in the sample, the t bound is too low.
 * The correction is Hall's (1992, "On the removal of skewness by transformation"): with a = g / (3 sqrt(n)), T =
 * (cbrt(1 + 3 a (-t - a / 2)) - 1) / a. */
struct sh_mean_bound sh_mean_bound_of(const double *x, const double *w, int n, double confidence);

/* As above, for the share x / w of correct answers. The bounds are also at least as far away as Wilson's (1927) for as
 * many independent answers, so they are meaningful even if all answers are correct. */
struct sh_mean_bound sh_mean_bound_of_share(const double *x, const double *w, int n, double confidence);

/* Sequences with which `high` would meet the target if they are like these; 0: no number would. */
int sh_mean_bound_needs(const struct sh_mean_bound *b, double target, double confidence);

#endif
