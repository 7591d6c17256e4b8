/* SPDX-License-Identifier: Apache-2.0 */
/* A query's recorded rows, one for each query head of a group, and the weights with which its keys enter the figures of
 * replay.h that are sums over the kept tokens. With K the set kept when query t attends,
 *
 *     kept mass            = sum over j in K of mass(j),          mass(j) = mean of p_g(j) / sum p_g
 *     ... without sinks    = sum over j in K of no_sink(j),    no_sink(j) = mean of p_g(j) / (what p_g has on
 *                                                                neither sinks nor t); 0 for those
 *     pivotal recall       = sum over j in K of pivotal(j),    pivotal(j) = mean of [p_g(j) > 1/n] / (such keys)
 *
 * each a mean over the query heads g that have the figure (replay.h). So the group is folded once a row, and whatever
 * is done for many kept sets is done once for a KV head. */
#ifndef SH_PLANNER_REPLAY_QUERY_H
#define SH_PLANNER_REPLAY_QUERY_H

#include "planner/replay/replay.h"

enum { SH_N_LINEAR = SH_PIVOTAL_RECALL + 1 };   /* the figures above, the first ones of the enum */

struct sh_replay_query {
    int n_token, group;                 /* set once                                               */
    int t, first_key;
    float limit;                        /* 1/n, n keys that the row sees                          */
    int has[SH_N_LINEAR];               /* is the figure defined?                                 */
    /* By position + 1, [1 + n_token]; keys before first_key, and [0]: 0. */
    float *row;                         /* what the policy sees: the mean of the group            */
    float *weight[SH_N_LINEAR];         /* group > 1; with one query head they are functions of row: */
    float scale[SH_N_LINEAR];           /* mass = scale row, no_sink = scale row or 0, pivotal = scale or 0 */
};

void sh_replay_query_begin(struct sh_replay_query *q, int n_token, int group);
void sh_replay_query_end(struct sh_replay_query *q);

/* Take the rows of query t, scores of the keys first_key to t. Rows come in order, and first_key never falls. -1: one
 * does not sum to 1 (within 5 %, the most that log8 makes of it). */
int sh_replay_query_row(struct sh_replay_query *q, int t, int first_key, const float *const *score, struct sh_err *e);

#endif
