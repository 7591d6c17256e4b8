/* SPDX-License-Identifier: Apache-2.0 */
/* "oracle-readmit": what no eviction policy can beat. In every row the cache holds the row's own token and whichever
 * budget - 1 others serve that row best, as if what has left could come back. For all budgets at once: a row is sorted,
 * and the figures of all budgets are running sums down the sorted row.
 *
 * Each figure has its own best tokens, so each is a bound by itself: of the kept mass, the keys with most mass; without
 * sinks, the same among the others; of pivotal recall, pivotal keys first. A group of query heads shares one set, the
 * best for their mean. Before `prefill` everything is kept. */
#ifndef SH_PLANNER_REPLAY_BOUND_H
#define SH_PLANNER_REPLAY_BOUND_H

#include "planner/replay/replay.h"

struct sh_replay_bound;

/* Of the setup: n_token, window, prefill, group. */
struct sh_replay_bound *sh_replay_bound_new(const struct sh_replay_setup *setup);
void sh_replay_bound_free(struct sh_replay_bound *b);           /* NULL is fine */

/* As sh_replay_row. */
int sh_replay_bound_row(struct sh_replay_bound *b, int t, int first_key, const float *const *row, struct sh_err *e);

/* The sums so far at a budget >= 1: the three figures that are sums over the kept tokens, occupancy and peak. Sets that
 * readmit have no stability; the output error is left out. */
void sh_replay_bound_sums(struct sh_replay_bound *b, int budget, struct sh_replay_sums *out);

#endif
