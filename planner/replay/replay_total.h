/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of many heads' replays together. A head's figure is the mean over the rows of all its sequences, a
 * layer's the mean over its heads, the whole's the mean over its layers; NaN where no row has it. Memory grows with
 * cells times (heads + sequences), not with the trace's length. */
#ifndef SH_PLANNER_REPLAY_TOTAL_H
#define SH_PLANNER_REPLAY_TOTAL_H

#include "planner/replay/replay.h"

struct sh_replay_total;

/* heads [n_layer]: KV heads of each layer, at most n_head; 0: it does not attend. */
struct sh_replay_total *sh_replay_total_new(int n_cell, int n_layer, const int *heads, int n_head, int n_sequence);
void sh_replay_total_free(struct sh_replay_total *t);   /* NULL is fine */

/* Adds one (cell, sequence, layer): the sums of its heads, s[0], s[step], ... */
void sh_replay_total_add(struct sh_replay_total *t, int cell, int sequence, int layer, const struct sh_replay_sums *s,
                         int step);

double sh_replay_total_head(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, int layer, int head);

/* The mean over the heads of a layer; layer -1: over all layers. */
double sh_replay_total_mean(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, int layer);

int sh_replay_total_peak(const struct sh_replay_total *t, int cell);                /* tokens of a head */
double sh_replay_total_mean_peak(const struct sh_replay_total *t, int cell);        /* the mean over heads */
int sh_replay_total_heads(const struct sh_replay_total *t);                         /* heads of all layers */
double sh_replay_total_policy_bytes(const struct sh_replay_total *t, int cell);     /* per head, mean   */

/* A 95 % interval of the whole's figure by the bootstrap: sequences drawn with replacement, 1000 times, the rows of
 * each draw taken together. -1: fewer than two sequences have it. */
int sh_replay_total_interval(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, uint64_t seed,
                             double *low, double *high);

/* The area under y over x, x ascending, as a mean height: the trapezoids over the width. n >= 2 and x[0] < x[n - 1],
 * else NaN. */
double sh_area_mean(const double *x, const double *y, int n);

#endif
