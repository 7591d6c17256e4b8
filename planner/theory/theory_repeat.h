/* SPDX-License-Identifier: Apache-2.0 */
/* Theorem 3.1 of the Scissorhands paper (why important tokens stay important), checked on one head.
 *
 * The paper's head: unit rows x_j, q = x W_Q, k = x W_K, v = x W_V, a_t = sum_j A[t,j] v_j W_O, and x_{t+1} = F(a_t).
 * With g_jl = x_j W_V W_O W_Q W_K' x_l' = v_j M k_l', M = W_O W_Q, it says
 *     (g_ll / |a_t|) (A[t,l] - 3 eps) <= q_{t+1} k_l' <= (g_ll / |a_t|) (A[t,l] + 3 eps)
 * wherever
 *     g_ll >= c,   g_ll >= max_{j != l} |g_jl| / eps,   a_t x_{t+1}' >= (1 - delta) |a_t|,
 *     delta <= (c eps / lambda)^2,   lambda = the four matrices' largest singular values' product:
 * what a token will score next is its present attention times a factor of its own. (The printed text's slips are
 * mended: W_O for the second W_Q of its equation 1, x_l for the x_j in the middle, the absolute value that its Lemma
 * B.2 needs.)
 *
 * c = g_ll serves each token best, so every pair (t, l) with g_ll > 0 has one smallest eps for which all conditions
 * hold:
 *     eps_tl = max(max_{j <= t, j != l} |g_jl| / g_ll,  lambda sqrt(delta_t) / g_ll),
 * and the theorem is checked with that. Where 3 eps >= 1 its two sides leave everything open. Real models have many
 * layers between a_t and x_{t+1}, so delta is near 1 there and few pairs, if any, are told anything; that is a finding,
 * and `step` says how far the premise is off. */
#ifndef SH_PLANNER_THEORY_REPEAT_H
#define SH_PLANNER_THEORY_REPEAT_H

#include <stdint.h>

#include "src/base/err.h"

/* A head's matrices, reduced to what the theorem needs. Rotations, biases and norms between x and q, k, v are not part
 * of the paper's model: q and k are those before a rotation and before any scale. */
struct sh_repeat_weights {
    int d_head;
    double *wo_wq;                      /* [d_head, d_head] M = W_O W_Q                           */
    double *wo_wo;                      /* [d_head, d_head] W_O W_O', so |a| = sqrt(o G o')       */
    double lambda;                      /* lambda_Q lambda_K lambda_V lambda_O                    */
};

/* From wq, wk, wv [d_model, d_head] and wo [d_head, d_model], row-major. -1: a size below 1 or a number that is not
 * finite. */
int sh_repeat_weights_set(struct sh_repeat_weights *w, const float *wq, const float *wk,
                          const float *wv, const float *wo, int d_model, int d_head, struct sh_err *e);
void sh_repeat_weights_clear(struct sh_repeat_weights *w);

/* n tokens of that head. attention is packed and causal: row t has t + 1 scores, rows follow each other. cosine[t] =
 * a_t x_{t+1}' / (|a_t| |x_{t+1}|) for t < n - 1, taken in double: its root counts, and rows that are rounded to float
 * have a length that is not quite 1. */
struct sh_repeat_head {
    int n;
    const float *q, *k, *v;             /* [n, d_head]                                            */
    const float *attention;             /* [n (n + 1) / 2]                                        */
    const double *cosine;               /* [n - 1]; NULL: unknown, see below                      */
};

/* Means are NaN without pairs. Without cosines delta is unknown: then delta is taken as small as the first two
 * conditions allow (eps_tl from the g alone), and a violation tells that the premise on x_{t+1} fails, not that the
 * theorem does. */
struct sh_repeat {
    uint64_t pairs;                     /* (t, l), l <= t < n - 1                                 */
    uint64_t positive;                  /* g_ll > 0: the theorem speaks of them                   */
    uint64_t informative;               /* ... and 3 eps < 1                                      */
    uint64_t above_zero;                /* ... and A - 3 eps > 0: tells a positive next score     */
    uint64_t violations;                /* positive, and outside the bounds beyond rounding       */
    double least_eps, mean_eps;         /* over the positive pairs                                */
    double step;                        /* mean of |q_{t+1} k_l' - a_t W_Q k_l' / |a_t|| over the
                                         * positive pairs, in units of g_ll / |a_t|               */
    double lemma;                       /* largest |a_t W_Q k_l' - A g_ll| / max |g_jl|; at most 1
                                         * by Lemma B.2, up to rounding                           */
};

/* O(n^2 d_head). -1: n < 2 or a number that is not finite. */
int sh_repeat_check(const struct sh_repeat_weights *w, const struct sh_repeat_head *h,
                    struct sh_repeat *out, struct sh_err *e);

#endif
