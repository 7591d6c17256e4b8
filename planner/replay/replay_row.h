/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over the slots of a row, which all ways of replay share and in which replay spends its time. */
#ifndef SH_PLANNER_REPLAY_ROW_H
#define SH_PLANNER_REPLAY_ROW_H

#include "planner/replay/replay.h"

struct sh_kept_row {
    double mass;                        /* attention to all kept tokens                           */
    double sink_mass;                   /* part of the kept ones at positions < sinks             */
    int above;                          /* kept scores > limit                                    */
};

/* out[i] = score[pos[i]], for i < n; score[-1] must be 0 (free slots). */
void sh_row_gather(const float *score, const int *pos, int n, float limit, int sinks, float *out,
                   struct sh_kept_row *kept);

void sh_row_scale(float *x, float factor, int n);

/* The sum of n scores, and how many are > limit. */
double sh_row_sum(const float *score, int n, float limit, int *above);

/* The denominators of one recorded row's figures (replay.h). */
struct sh_row_shares {
    double mass;                        /* sum of the whole row: 1 except for the codec's rounding */
    double no_sink;                     /* on neither sinks nor the query's own token; 0: negligible */
    int above;                          /* scores > limit                                         */
};

/* Row t, scores of the keys from first_key on. -1: it does not sum to 1 (within 5 %, the most that log8 makes of
 * it). */
int sh_row_shares(const float *score, int t, int first_key, float limit, int has_sinks, struct sh_row_shares *out,
                  struct sh_err *e);

/* The group's recorded queries at row t, [group, d_head], copied to `to`, which is returned. */
const float *sh_replay_queries(const struct sh_replay_setup *s, int t, float *to);

/* Row t has passed: take it off `left` [n_token], the attention that each key has still to get (the group's mean), and
 * write what is left to future[0 .. t]. */
void sh_replay_look_ahead(const struct sh_replay_setup *s, int t, int first_key, const float *const *row, double *left,
                          float *future);

/* ---- a group's rows ---- */

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

enum { SH_N_LINEAR = SH_PIVOTAL_RECALL + 1 };   /* the figures above, the first ones of the enum */

struct sh_replay_query {
    int n_token, group, has_sinks;      /* set once; the last one after _begin: rows sum to less than 1 */
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
