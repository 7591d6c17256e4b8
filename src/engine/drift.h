/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sets of two runs over the same tokens, side by side: what a live cache kept against what a replay
 * of the recorded attention says it would have kept. A token that has left does not come back, so the sets
 * of a head are told by the last query that each token was there for. */
#ifndef SH_ENGINE_DRIFT_H
#define SH_ENGINE_DRIFT_H

#include "planner/policy/policy.h"

/* What the query of t attends over: last[position] = t for every kept token. last [n_token]. */
void sh_drift_see(int *last, int t, const struct sh_cache *c);

/* Steps of one head; like [n_token]: Jaccard index of the two sets at each. */
struct sh_drift_head {
    int first_left[2];                  /* first step from which a token is missing; n_token: never */
    int same_first;                     /* both at the same step, of the same tokens              */
    int first_difference;               /* first step with different sets; n_token: none          */
};

struct sh_drift_head sh_drift_compare(const int *last_a, const int *last_b, int n_token, double *like);

/* Histogram of (compressed - full) / full over the scores of rows, where the full model's is above 0:
 * bin 0 is exactly -1 (the token has left), bins 1 to 40 are a tenth wide and begin at -1, the last is 3 and
 * above. Sums of scores counted one by one, and weighted with the full model's score. */
enum { SH_CHANGE_BINS = 42 };
struct sh_score_change { double pairs[SH_CHANGE_BINS], mass[SH_CHANGE_BINS]; };

void sh_score_change_add(struct sh_score_change *h, double full, double compressed);
static inline double sh_score_change_from(int bin)      /* lower edge of bins 1 to 41             */
{
    return (bin - 11) / 10.0;
}

#endif
