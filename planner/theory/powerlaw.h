/* SPDX-License-Identifier: Apache-2.0 */
/* The continuous power law p(x) = (a-1)/xmin (x/xmin)^-a for x >= xmin, fitted to a sample.
 *
 * Clauset, Shalizi, Newman, "Power-law distributions in empirical data", SIAM Review 51 (2009):
 *     exponent  a = 1 + n_tail / sum ln(x / xmin) over x >= xmin       (their eq. 3.1)
 *     sigma     (a - 1) / sqrt(n_tail)                                 (their eq. 3.2)
 *     ks        max over the tail of |model CDF - share of the tail strictly below x|
 * scan: of all distinct values except the largest, the xmin with the smallest ks, the first of equals.
 *
 * Cost: one radix sort, then per candidate a search that leaves out stretches which cannot hold the largest distance
 * (both distribution functions rise) and stops as soon as the candidate has lost. Exact, near O(n) in practice;
 * max_candidate bounds it in any case. Memory: 48 bytes a value while it runs. For more values than that allows, draw a
 * sample first (planner/theory/theory_sample.h). */
#ifndef SH_PLANNER_THEORY_POWERLAW_H
#define SH_PLANNER_THEORY_POWERLAW_H

#include <stddef.h>

/* Figures are NaN where nothing can be fitted: no value above xmin; for the scan, fewer than two distinct values. */
struct sh_powerlaw {
    size_t n;                           /* values used: positive and finite; others are left out */
    size_t n_tail;                      /* of these, those >= xmin                               */
    size_t n_candidate;                 /* values that were tried as xmin                        */
    double xmin, exponent, sigma, ks;
};

/* With the best xmin. max_candidate 0: every distinct value; else at most that many, from the smallest on, so that the
 * number of distinct values above them falls by equal factors: near the end, where tails are short, they are close
 * together. 1000 cost a fraction of the sort. */
void sh_powerlaw_scan(const double *x, size_t n, size_t max_candidate, struct sh_powerlaw *out);

#endif
