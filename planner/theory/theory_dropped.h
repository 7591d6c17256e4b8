/* SPDX-License-Identifier: Apache-2.0 */
/* The measured side of the dropped-mass law: what share of a row's mass the smallest scores carry
 * when B = ceil(rho n) of the row's n are kept, and what that does to the output, as means over the
 * rows that are fed. Stands beside D(rho) of planner/theory/bound.h, which is taken at the very shares
 * B / n that the rows had. */
#ifndef SH_PLANNER_THEORY_DROPPED_H
#define SH_PLANNER_THEORY_DROPPED_H

#include <stdint.h>

struct sh_theory_dropped;

/* rho[n_rho] ascending, each in (0, 1]. NULL: they are not. */
struct sh_theory_dropped *sh_theory_dropped_new(const double *rho, int n_rho);
void sh_theory_dropped_free(struct sh_theory_dropped *t);   /* NULL is fine */

/* The row of query q; nothing happens for q < split. v[n, d]: the values of the same keys, or NULL.
 * Rows of which sh_theory_output_row makes nothing are counted and left out. */
void sh_theory_dropped_row(struct sh_theory_dropped *t, int split, int q, int n, const float *scores,
                           const float *v, int d);

/* Means over rows; NaN without rows (or without values, where values are needed). */
struct sh_dropped {
    uint64_t rows, left_out, rows_with_v;
    double budget;                      /* of B / n                                               */
    double dropped;                     /* of 1 - kept                                            */
    double law;                         /* of D(B / n) for the exponent k; NaN for k <= 2         */
    double law_cut;                     /* of D cut at x = n, as scores are at most 1; any k > 1  */
    double error, bound;                /* of the output error, of 2 (1 - kept) max|v|            */
};

/* k, b: of a Lomax fit to the same rows (planner/theory/theory_sample.h); NaN gives no law. */
void sh_theory_dropped_get(const struct sh_theory_dropped *t, int i_rho, double k, double b,
                           struct sh_dropped *out);

#endif
