/* SPDX-License-Identifier: Apache-2.0 */
/* What keeping only the largest scores of one attention row costs.
 *
 * Of a row A over n visible keys, brought to the sum 1, the `budget` largest scores are kept (of
 * equal ones the newer first, as eviction drops the older) and divided by their sum:
 *     kept   the mass of the kept scores (recall)
 *     error  | sum A v - sum A' v |_2
 *     bound  2 (1 - kept) max |v_j|_2 over the visible keys
 * In exact arithmetic error <= bound, whatever the scores. Sums are in double. */
#ifndef SH_PLANNER_THEORY_OUTPUT_H
#define SH_PLANNER_THEORY_OUTPUT_H

#include <stddef.h>

struct sh_theory_output {
    double kept, error, bound;          /* all NaN for a row that is no distribution (see below)  */
};

/* Scratch for rows of up to n keys and values of width d; grows by itself. */
struct sh_theory_scratch;

struct sh_theory_scratch *sh_theory_scratch_new(void);
void sh_theory_scratch_free(struct sh_theory_scratch *s);   /* NULL is fine */

/* One row, many budgets. scores[n]; v[n, d] holds the values of the same keys, or is NULL: then
 * only `kept` is filled and the rest is NaN. budget[n_budget] ascending, each >= 1; one beyond n
 * keeps the row. A row that has no keys, a score that is negative or not finite, or no mass
 * gives NaN, and so do values that are not finite (except for `kept`). Takes
 * O(n log n + (n + n_budget) d). */
void sh_theory_output_row(struct sh_theory_scratch *s, const float *scores, int n, const float *v,
                          int d, const int *budget, int n_budget, struct sh_theory_output *out);

#endif
