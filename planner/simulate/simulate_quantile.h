/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of any number of durations in fixed memory: counts in cells whose edges grow by a factor of
 * 1.001, from 1 us to 10^7 s. A quantile is the middle of the cell that holds the value of that rank, so it is
 * off by 0.05 % at most; mean, least and largest are exact, and quantiles never leave them. What is outside
 * counts in the first or last cell. */
#ifndef SH_PLANNER_SIMULATE_QUANTILE_H
#define SH_PLANNER_SIMULATE_QUANTILE_H

#include <stdint.h>

enum { SH_QUANTILE_CELLS = 29949 };     /* ln(10^13) / ln(1.001), rounded up                      */

struct sh_quantile {
    uint64_t n;
    double sum, least, largest;
    uint64_t cell[SH_QUANTILE_CELLS];
};

/* A struct of zeros is empty. */
void sh_quantile_add(struct sh_quantile *q, double value);

/* The smallest value that at least `share` of all do not exceed (nearest rank); NaN when empty. */
double sh_quantile_at(const struct sh_quantile *q, double share);
double sh_quantile_mean(const struct sh_quantile *q);

#endif
