/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation records, in fixed memory however long it runs. */
#ifndef SH_PLANNER_SIMULATE_SERIES_H
#define SH_PLANNER_SIMULATE_SERIES_H

#include <stdint.h>

/* Quantiles of any number of durations in fixed memory: counts in cells whose edges grow by a factor of 1.001, from 1
 * us to 10^7 s. A quantile is the middle of the cell that holds the value of that rank, so it is off by 0.05 % at most;
 * mean, least and largest are exact, and quantiles never leave them. What is outside counts in the first or last
 * cell. */
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

/* A quantity over time, as means of equal stretches, in fixed memory: when the stretches are full, each two become one
 * and the next ones are twice as long. */
enum { SH_TIMELINE_BINS = 512 };        /* even */

struct sh_timeline {
    double width;                       /* seconds of a stretch                                   */
    double sum[SH_TIMELINE_BINS];       /* value times seconds                                    */
    double end;                         /* of what was told so far                                */
};

/* First stretches of `width` seconds. */
void sh_timeline_start(struct sh_timeline *t, double width);

/* The quantity was `value` from `from` to `to`; stretches in any order that do not overlap. */
void sh_timeline_add(struct sh_timeline *t, double from, double to, double value);

/* Stretches in use, and the mean of one (of the part of it that has passed). */
int sh_timeline_count(const struct sh_timeline *t);
double sh_timeline_mean(const struct sh_timeline *t, int i);

#endif
