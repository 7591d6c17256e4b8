/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways to replay do with a row: the loops over slots that replay spends its time in. */
#ifndef SH_PLANNER_REPLAY_ROW_H
#define SH_PLANNER_REPLAY_ROW_H

#include "planner/replay/replay.h"

struct sh_kept_row {
    double mass;                        /* of all kept tokens                                     */
    double sink_mass;                   /* of the kept ones at positions < sinks                  */
    int above;                          /* kept scores > limit                                    */
};

/* out[i] = score[pos[i]], for i < n; score[-1] must be 0 (free slots). */
void sh_row_gather(const float *score, const int *pos, int n, float limit, int sinks, float *out,
                   struct sh_kept_row *kept);

void sh_row_scale(float *x, float factor, int n);

/* The sum of n scores, and how many are > limit. */
double sh_row_sum(const float *score, int n, float limit, int *above);

/* What the scores of one recorded row are shares of (the figures of replay.h). */
struct sh_row_shares {
    double mass;                        /* of the whole row: 1, but for what the codec did to it  */
    double no_sink;                     /* on neither sinks nor the query's own token; 0: nothing to speak of */
    int above;                          /* scores > limit                                         */
};

/* Row t, scores of the keys from first_key on. -1: it does not sum to 1 (within 5 %, the most that log8 makes of
 * it). */
int sh_row_shares(const float *score, int t, int first_key, float limit, struct sh_row_shares *out, struct sh_err *e);

/* The group's recorded queries at row t, [group, d_head], copied to `to`, which is returned. */
const float *sh_replay_queries(const struct sh_replay_setup *s, int t, float *to);

/* Row t has passed: take it off `left` [n_token], the attention that each key has still to get (the group's mean), and
 * write what is left to future[0 .. t]. */
void sh_replay_look_ahead(const struct sh_replay_setup *s, int t, int first_key, const float *const *row, double *left,
                          float *future);

#endif
