/* SPDX-License-Identifier: Apache-2.0 */
/* Attention made from whole numbers, the same as in tests/oracle/policies.py, and its replay through one
 * cache. */
#ifndef TESTS_UNIT_POLICY_STORY_H
#define TESTS_UNIT_POLICY_STORY_H

#include "planner/replay/replay.h"

struct story {
    const char *kind;                   /* random, sinks, ties, onehot, uniform                   */
    int group, prefill, window, n_token, d_head, layer, head;
    enum sh_rows rows;
    uint64_t seed;
    float *row;                         /* [n_token][group][n_token]: from the first visible key  */
    float *q, *k, *v;                   /* [group][n_token][d_head], [n_token][d_head]            */
    double *received;                   /* [n_token]                                              */
};

/* Everything above n_token is set; fills the arrays. */
void story_tell(struct story *s);
void story_free(struct story *s);

/* What to change a story's rows, queries and vectors into after token `from`: other numbers. */
void story_change(struct story *s, int from);

/* Mean over the group: what row t gives to key j (0 outside of the window), and what the rows from t on
 * do, as replay accounts for it. */
float story_score(const struct story *s, int t, int j);
double story_future(const struct story *s, int t, int j);

/* leaves [n_token]: the token whose coming dropped it, -1: none. The sums may be NULL. Returns -1 if a
 * token came back, or the number of those kept was wrong. */
int story_replay(const struct story *s, const struct sh_policy_spec *spec, int budget, int *leaves,
                 struct sh_replay_sums *sums);

#endif
