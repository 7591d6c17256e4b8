/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_query.h. */
#include "planner/replay/replay_query.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policy/vectors.h"
#include "planner/replay/replay_row.h"
#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/num.h"

void sh_replay_query_begin(struct sh_replay_query *q, int n_token, int group)
{
    *q = (struct sh_replay_query){.n_token = n_token, .group = group};
    q->row = xcalloc((size_t)n_token + 1, sizeof(float));
    for (int f = 0; group > 1 && f < SH_N_LINEAR; f++)
        q->weight[f] = xcalloc((size_t)n_token + 1, sizeof(float));
}

void sh_replay_query_end(struct sh_replay_query *q)
{
    free(q->row);
    for (int f = 0; f < SH_N_LINEAR; f++)
        free(q->weight[f]);
}

SH_CLONES static void add_above(float *restrict to, const float *restrict score, float limit, float factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += score[i] > limit ? factor : 0;
}

/* One query head's part in the group's weights. */
static void fold(struct sh_replay_query *q, const float *score, const struct sh_row_shares *s, int first)
{
    int from = q->first_key + 1, n = q->t + 1 - q->first_key;
    float scale[SH_N_LINEAR] = {(float)(1 / (s->mass * q->group)),
                                s->no_sink > 0 ? (float)(1 / (s->no_sink * q->has[SH_KEPT_MASS_NO_SINK])) : 0,
                                s->above ? (float)(1.0 / ((double)s->above * q->has[SH_PIVOTAL_RECALL])) : 0};
    for (int f = 0; first && f < SH_N_LINEAR; f++)
        memset(q->weight[f] + from, 0, (size_t)n * sizeof(float));
    sh_add_scaled(q->weight[SH_KEPT_MASS] + from, score, scale[SH_KEPT_MASS], n);
    sh_add_scaled(q->weight[SH_KEPT_MASS_NO_SINK] + from, score, scale[SH_KEPT_MASS_NO_SINK], n);
    add_above(q->weight[SH_PIVOTAL_RECALL] + from, score, q->limit, scale[SH_PIVOTAL_RECALL], n);
    if (first) {
        memcpy(q->row + from, score, (size_t)n * sizeof(float));
        sh_row_scale(q->row + from, (float)(1.0 / q->group), n);
    } else {
        sh_add_scaled(q->row + from, score, (float)(1.0 / q->group), n);
    }
}

/* The window has moved on from here. */
static void forget(struct sh_replay_query *q, int from, int to)
{
    for (int j = from; j < to; j++) {
        q->row[j + 1] = 0;
        for (int f = 0; q->group > 1 && f < SH_N_LINEAR; f++)
            q->weight[f][j + 1] = 0;
    }
}

static void take_group(struct sh_replay_query *q, const float *const *score, const struct sh_row_shares *s)
{
    for (int g = 0; g < q->group; g++)
        fold(q, score[g], &s[g], g == 0);
    float *no_sink = q->weight[SH_KEPT_MASS_NO_SINK];
    for (int j = q->first_key; j < SH_REPLAY_SINKS && j < q->t; j++)
        no_sink[j + 1] = 0;
    no_sink[q->t + 1] = 0;
}

int sh_replay_query_row(struct sh_replay_query *q, int t, int first_key, const float *const *score, struct sh_err *e)
{
    struct sh_row_shares s[q->group];
    int before = q->first_key;
    q->t = t;
    q->first_key = first_key;
    q->limit = sh_round_down(1.0 / (t + 1 - first_key));
    q->has[SH_KEPT_MASS] = q->group;
    q->has[SH_KEPT_MASS_NO_SINK] = q->has[SH_PIVOTAL_RECALL] = 0;
    for (int g = 0; g < q->group; g++) {
        if (sh_row_shares(score[g], t, first_key, q->limit, &s[g], e))
            return -1;
        q->has[SH_KEPT_MASS_NO_SINK] += s[g].no_sink > 0;
        q->has[SH_PIVOTAL_RECALL] += s[g].above > 0;
    }
    forget(q, before, first_key);
    if (q->group > 1) {
        take_group(q, score, s);
        return 0;
    }
    memcpy(q->row + 1 + first_key, score[0], (size_t)(t + 1 - first_key) * sizeof(float));
    q->scale[SH_KEPT_MASS] = (float)(1 / s->mass);
    q->scale[SH_KEPT_MASS_NO_SINK] = s->no_sink > 0 ? (float)(1 / s->no_sink) : 0;
    q->scale[SH_PIVOTAL_RECALL] = s->above ? 1 / (float)s->above : 0;
    return 0;
}
