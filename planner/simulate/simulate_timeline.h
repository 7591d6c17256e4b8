/* SPDX-License-Identifier: Apache-2.0 */
/* A quantity over time, as means of equal stretches, in fixed memory: when the stretches are full, each two
 * become one and the next ones are twice as long. */
#ifndef SH_PLANNER_SIMULATE_TIMELINE_H
#define SH_PLANNER_SIMULATE_TIMELINE_H

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
