/* SPDX-License-Identifier: Apache-2.0 */
/* The Lomax (Pareto II) density f(x) = (k-1) b^(k-1) (x+b)^-k on x > 0, which Theorem 4.1 of the
 * Scissorhands paper assumes for scores, fitted by maximum likelihood to a whole sample.
 *
 * With b given, k - 1 = n / S, S = sum ln(1 + x/b); what is left of the log-likelihood,
 *     n ln(n/S) - n ln b - S - n,
 * is maximised over ln b: the best of a grid over (-12, 12), then the zero of the derivative beside
 * it. A sample with an exponential or thinner tail has no maximum there (b grows without end). */
#ifndef SH_PLANNER_THEORY_LOMAX_H
#define SH_PLANNER_THEORY_LOMAX_H

#include <stddef.h>

struct sh_lomax {
    size_t n;                           /* values used: positive and finite; others are left out */
    double k, b, loglik;                /* NaN: no maximum with ln b inside (-12, 12)            */
};

void sh_lomax_fit(const double *x, size_t n, struct sh_lomax *out);     /* n may be 0 */

#endif
