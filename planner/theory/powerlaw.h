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
#include <stdint.h>

/* Figures are NaN where nothing can be fitted: no value above xmin; for the scan, fewer than two distinct values. */
struct sh_powerlaw {
    size_t n;                           /* values used: positive and finite; others are left out */
    size_t n_tail;                      /* the number of these that are >= xmin                  */
    size_t n_candidate;                 /* values that were tried as xmin                        */
    double xmin, exponent, sigma, ks;
};

/* The fit with the best xmin. max_candidate 0: every distinct value is tried; else at most that many, from the smallest
 * on, so that the number of distinct values above them falls by equal factors: near the end, where tails are short,
 * they are close together. 1000 cost a fraction of the sort. */
void sh_powerlaw_scan(const double *x, size_t n, size_t max_candidate, struct sh_powerlaw *out);

/* ---- is the fit believable? (powerlaw_goodness.c) ---- */

/* Goodness of fit: the semi-parametric bootstrap of Clauset, Shalizi, Newman (2009), section 4.1. A replica has n
 * values, each with probability n_tail / n drawn from the fitted law, else picked among the sample's values below xmin;
 * it is fitted as the sample was, and p is the share of replicas whose ks is at least as large. Seeded: the same sample
 * gives the same p. With 100 replicas p is good to 0.05, with 1000 to 0.016. Each replica costs one scan: of 65536
 * values some 0.1 s with every candidate, 0.01 s with 1000.
 *
 * A large sample rejects any law that is not exactly true; the fit may still be useful, which is what `ks` (how far
 * off) and the rivals below (what else would be better) are for. */

#define SH_POWERLAW_P 0.1               /* the law is ruled out at or below (Clauset et al.) */

enum sh_powerlaw_verdict {
    SH_POWERLAW_NO_FIT,                 /* nothing could be fitted, or no replica was asked for   */
    SH_POWERLAW_REJECTED,               /* p <= SH_POWERLAW_P                                     */
    SH_POWERLAW_PLAUSIBLE
};

struct sh_powerlaw_test {
    double p;                           /* NaN with SH_POWERLAW_NO_FIT                            */
    int n_replica;                      /* replicas that could be fitted                          */
    enum sh_powerlaw_verdict verdict;
};

/* `fit`: what sh_powerlaw_scan made of x with the same max_candidate. */
void sh_powerlaw_bootstrap(const double *x, size_t n, size_t max_candidate,
                           const struct sh_powerlaw *fit, int n_replica, uint64_t seed, struct sh_powerlaw_test *out);

/* A power-law fit against other laws of the same tail, by their likelihoods (Clauset, Shalizi, Newman 2009, section 5).
 *
 * The fit's log-likelihood over its tail, less that of another law fitted to the same tail:
 * positive favours the power law. p: how likely a ratio this far from 0 would be if both were equally good; a small p
 * makes the sign mean something. NaN where nothing was fitted. */
struct sh_powerlaw_rival {
    double ratio, p;
};

/* Exponential beyond xmin; p by Vuong (1989), both sides. */
void sh_powerlaw_against_exponential(const double *x, size_t n, const struct sh_powerlaw *fit,
                                     struct sh_powerlaw_rival *out);

/* Log-normal cut at xmin. The power law is a limit of this family, so the ratio is never above 0; p: half the tail of a
 * chi-square with one degree of freedom, the law lying on the family's edge. */
void sh_powerlaw_against_lognormal(const double *x, size_t n, const struct sh_powerlaw *fit,
                                   struct sh_powerlaw_rival *out);

#endif
