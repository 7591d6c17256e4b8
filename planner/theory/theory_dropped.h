/* SPDX-License-Identifier: Apache-2.0 */
/* The measured side of the dropped-mass law: what share of a row's mass the smallest scores carry when B = ceil(rho n)
 * of the row's n are kept, and what that does to the output, as means over the rows that are fed. To compare with
 * D(rho) of planner/theory/bound.h, taken at the same shares B / n that the rows had. */
#ifndef SH_PLANNER_THEORY_DROPPED_H
#define SH_PLANNER_THEORY_DROPPED_H

#include <stddef.h>
#include <stdint.h>

struct sh_theory_dropped;

/* rho[n_rho] ascending, each in (0, 1]. NULL: they are not. */
struct sh_theory_dropped *sh_theory_dropped_new(const double *rho, int n_rho);
void sh_theory_dropped_free(struct sh_theory_dropped *t);   /* NULL is fine */

/* The row of query q; nothing happens for q < split. v[n, d]: the values of the same keys, or NULL. Rows that give NaN
 * in sh_theory_output_row are counted and left out. */
void sh_theory_dropped_row(struct sh_theory_dropped *t, int split, int q, int n, const float *scores,
                           const float *v, int d);

/* Means over rows; NaN without rows (or without values, where values are needed). */
struct sh_dropped {
    uint64_t rows, left_out, rows_with_v;
    double budget;                      /* mean of B / n                                          */
    double dropped;                     /* mean of 1 - kept                                       */
    double law;                         /* mean of D(B / n) for the exponent k; NaN for k <= 2    */
    double law_cut;                     /* mean of D cut at x = n, as scores are at most 1; any k > 1 */
    double error, bound;                /* means of the output error, of 2 (1 - kept) max|v|      */
};

/* k, b: of a Lomax fit to the same rows (planner/theory/theory_sample.h); NaN gives no law. */
void sh_theory_dropped_get(const struct sh_theory_dropped *t, int i_rho, double k, double b, struct sh_dropped *out);

/* ---- one row ---- */

/* What keeping only the largest scores of one attention row costs.
 *
 * Of a row A over n visible keys, brought to the sum 1, the `budget` largest scores are kept (of equal ones the newer
 * first, as eviction drops the older) and divided by their sum:
 *     kept   the mass of the kept scores (recall)
 *     error  | sum A v - sum A' v |_2
 *     bound  2 (1 - kept) max |v_j|_2 over the visible keys
 * In exact arithmetic error <= bound, whatever the scores. Sums are in double. */
struct sh_theory_output {
    double kept, error, bound;          /* all NaN for a row that is not a distribution  */
};

/* Scratch for rows of up to n keys and values of width d; grows by itself. */
struct sh_theory_scratch;

struct sh_theory_scratch *sh_theory_scratch_new(void);
void sh_theory_scratch_free(struct sh_theory_scratch *s);   /* NULL is fine */

/* One row, many budgets. scores[n]; v[n, d] holds the values of the same keys, or is NULL: then only `kept` is filled
 * and the rest is NaN. budget[n_budget] ascending, each >= 1; one beyond n keeps the row. A row that has no keys, a
 * score that is negative or not finite, or no mass gives NaN, and so do values that are not finite (except for `kept`).
 * Takes O(n log n + (n + n_budget) d). */
void sh_theory_output_row(struct sh_theory_scratch *s, const float *scores, int n, const float *v,
                          int d, const int *budget, int n_budget, struct sh_theory_output *out);

#endif
