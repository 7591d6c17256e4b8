/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sets of two runs over the same tokens, side by side: what a live cache kept against what a replay
 * of the recorded attention says it would have kept. A token that has left does not come back, so the sets
 * of a head are told by the last query that each token was there for. */
#ifndef SH_ENGINE_DRIFT_H
#define SH_ENGINE_DRIFT_H

#include "planner/policy.h"

/* What the query of t attends over: last[position] = t for every kept token. last [n_token]. */
void sh_drift_see(int *last, int t, const struct sh_cache *c);

/* Steps of one head; like [n_token]: Jaccard index of the two sets at each. */
struct sh_drift_head {
    int first_left[2];                  /* first step from which a token is missing; n_token: never */
    int same_first;                     /* both at the same step, of the same tokens              */
    int first_difference;               /* first step with different sets; n_token: none          */
};

struct sh_drift_head sh_drift_compare(const int *last_a, const int *last_b, int n_token, double *like);

#endif
