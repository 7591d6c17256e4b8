/* SPDX-License-Identifier: Apache-2.0 */
/* What the theory promises for keeping a share rho = B/T of the cache when scores follow the Lomax density below with
 * exponent k (Scissorhands, Theorem 4.1).
 *
 * As printed (its equation 4), for eps in [0, rho):
 *     inner = k - (k-1) ((1-eps) / (rho-eps))^(1/(k-1))
 *     bound = 2.1 (1-rho) / (1-eps)^2 inner.
 * The last step of its proof replaces rho by 1 - rho and so holds only for rho >= 1/2; for small rho inner is negative
 * and the bound says nothing (an error cannot be below a negative number). Its constant, besides, needs scores that
 * spread far beyond b (u >= 99 b for k = 3), and it holds only with the probability that sh_bound_failure takes from
 * one.
 *
 * The step before it is sound: the smallest 1 - rho of a sample carry on average the share
 *     D(rho) = 1 - (k-1) rho^((k-2)/(k-1)) + (k-2) rho,    k > 2,
 * of its sum (u without end). Dropping a mass D costs an attention output at most 2 D max |v|, so 2 D(rho) bounds its
 * mean error in units of the largest value vector. */
#ifndef SH_PLANNER_THEORY_BOUND_H
#define SH_PLANNER_THEORY_BOUND_H

#include <stddef.h>

struct sh_bound {
    double inner, bound;                /* NaN: outside the theorem's domain (see sh_bound_at)    */
    double dropped;                     /* D(rho); NaN for k <= 2, where the law has no mean      */
    double corrected;                   /* 2 D(rho)                                               */
    int informative;                    /* the printed bound says something: inner > 0            */
    int proven;                         /* its last step holds, too: rho >= 1/2 and k > 2         */
};

/* Domain: k > 1, 0 <= eps < rho <= 1. dropped needs only 0 <= rho <= 1 and k > 2. Arguments that are NaN give NaN and
 * no flag. */
void sh_bound_at(double rho, double k, double eps, struct sh_bound *out);

double sh_bound_dropped(double rho, double k);          /* D(rho) */

/* D for the density cut at x = most, as the theorem's appendix has it (most = u - b). Defined for all k > 1, and so
 * also for the k <= 2 that attention often has: a score is at most 1, hence x = score n at most n. With
 *     y = 1 + x/b,    r = 1 + most/b,
 *     ln w = -ln(r^(1-k) + rho (1 - r^(1-k))) / (k-1),     the y above which the share rho lies
 *     D = M(w) / M(r),    M(w) = integral from 1 to w of (y - 1) y^-k dy.
 * Tends to D(rho) for most -> infinity. NaN unless 0 <= rho <= 1, k > 1, b > 0 and most > 0. */
double sh_bound_dropped_cut(double rho, double k, double b, double most);

/* The probability with which the theorem's statement may fail, above 1 when it says nothing:
 *     t_max exp(-(t_min-1) (eps b / ((k-2) (u-b)))^2) + t_max exp(-2 (t_min-1) ((1-rho) / (1-eps))^2)
 * for sequences of t_min..t_max tokens and scores in [0, u-b); k > 2, u > b > 0, eps in (0, 1). NaN outside. */
double sh_bound_failure(double rho, double k, double eps, double b, double u, double t_min, double t_max);

/* ---- the density ---- */

/* The Lomax (Pareto II) density f(x) = (k-1) b^(k-1) (x+b)^-k on x > 0, which Theorem 4.1 of the Scissorhands paper
 * assumes for scores, fitted by maximum likelihood to a whole sample.
 *
 * With b given, k - 1 = n / S, S = sum ln(1 + x/b); what is left of the log-likelihood,
 *     n ln(n/S) - n ln b - S - n,
 * is maximised over ln b: the best of a grid over (-12, 12), then the zero of the derivative next to it. A sample with
 * an exponential or thinner tail has no maximum there (b grows without end). */
struct sh_lomax {
    size_t n;                           /* values used: positive and finite; others are left out */
    double k, b, loglik;                /* NaN: no maximum with ln b inside (-12, 12)            */
};

void sh_lomax_fit(const double *x, size_t n, struct sh_lomax *out);     /* n may be 0 */

#endif
