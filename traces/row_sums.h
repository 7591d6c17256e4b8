/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of single attention rows, summed over the rows of a head: how focused attention is. */
#ifndef SH_TRACES_ROW_SUMS_H
#define SH_TRACES_ROW_SUMS_H

#include <stdint.h>

struct sh_row_sums {
    uint64_t rows, entries;             /* rows seen, and the keys that they could see together   */
    uint64_t below_mean;                /* entries < 1 / n_q (as real numbers)                    */
    uint64_t below_1pct;                /* entries < 0.01 * the largest of their row              */
    uint64_t rows_of_two;               /* rows with at least two keys                            */
    double entropy;                     /* sum over rows of -sum p ln p, nats                     */
    double normalised_entropy;          /* sum over rows_of_two of entropy / ln n_q               */
    double mass_top;                    /* sum over rows of the ceil(0.2 n_q) largest entries     */
};

/* Add one row of n >= 1 scores (>= 0; anything else gives meaningless sums, never a bad access).
 * The logarithm is a float polynomial: the entropy of a row is good
 * to about 1e-7 relative. The sums do not depend on the machine's vector width. */
void sh_row_sums_add(struct sh_row_sums *sums, const float *row, int n);

#endif
