/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_row.h. Sums in a fixed number of lanes, so that every machine gets the same. */
#include "planner/replay/replay_row.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policy/simd_gather.h"
#include "planner/policy/vectors.h"
#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/num.h"

enum { LANES = 16 };

SH_INLINE double total(const float lane[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += (double)lane[k];
    return sum;
}

SH_INLINE int total_int(const int lane[LANES])
{
    int sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

struct lanes {
    float mass[LANES], sink[LANES];
    int above[LANES];
};

SH_INLINE void add_lanes(struct lanes *l, const float *x, const int *pos, float limit, int sinks)
{
    for (int k = 0; k < LANES; k++) {
        l->mass[k] += x[k];
        l->sink[k] += pos[k] < sinks ? x[k] : 0;
        l->above[k] += x[k] > limit;
    }
}

/* What is left of the last lanes is filled up with zeros, which no sum sees. */
SH_CLONES static void sum_up(const float *x, const int *pos, int n, float limit, int sinks, struct sh_kept_row *kept)
{
    struct lanes l = {{0}, {0}, {0}};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        add_lanes(&l, x + i, pos + i, limit, sinks);
    if (whole < n) {
        float last[LANES] = {0};
        int last_pos[LANES] = {0};
        memcpy(last, x + whole, (size_t)(n - whole) * sizeof *x);
        memcpy(last_pos, pos + whole, (size_t)(n - whole) * sizeof *pos);
        add_lanes(&l, last, last_pos, limit, sinks);
    }
    kept->mass = total(l.mass);
    kept->sink_mass = total(l.sink);
    kept->above = total_int(l.above);
}

void sh_row_gather(const float *score, const int *pos, int n, float limit, int sinks, float *out,
                   struct sh_kept_row *kept)
{
    sh_simd_gather(out, score, pos, n);
    sum_up(out, pos, n, limit, sinks, kept);
}

SH_CLONES void sh_row_scale(float *x, float factor, int n)
{
    for (int i = 0; i < n; i++)
        x[i] *= factor;
}

SH_CLONES double sh_row_sum(const float *score, int n, float limit, int *above)
{
    float sum[LANES] = {0};
    int count[LANES] = {0};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++) {
            sum[k] += score[i + k];
            count[k] += score[i + k] > limit;
        }
    for (int i = whole; i < n; i++) {
        sum[i - whole] += score[i];
        count[i - whole] += score[i] > limit;
    }
    *above = total_int(count);
    return total(sum);
}

/* Mass below this is rounding of the row's sum, and no share of it means anything. */
static const double least_mass = 1e-6;

int sh_row_shares(const float *score, int t, int first_key, float limit, int has_sinks, struct sh_row_shares *out,
                  struct sh_err *e)
{
    struct sh_row_shares s;
    s.mass = sh_row_sum(score, t + 1 - first_key, limit, &s.above);
    if (!(s.mass > (has_sinks ? 0 : 0.95) && s.mass < 1.05))
        return sh_fail(e, "row %d sums to %g, expected 1", t, s.mass);
    s.no_sink = s.mass - (t >= SH_REPLAY_SINKS ? (double)score[t - first_key] : 0);
    for (int j = first_key; j < SH_REPLAY_SINKS && j <= t; j++)
        s.no_sink -= (double)score[j - first_key];
    if (s.no_sink <= least_mass)
        s.no_sink = 0;
    *out = s;
    return 0;
}

const float *sh_replay_queries(const struct sh_replay_setup *s, int t, float *to)
{
    size_t d = (size_t)s->d_head;
    for (int g = 0; g < s->group; g++)
        memcpy(to + (size_t)g * d, s->q + ((size_t)g * (size_t)s->n_token + (size_t)t) * d, d * sizeof *to);
    return to;
}

void sh_replay_look_ahead(const struct sh_replay_setup *s, int t, int first_key, const float *const *row, double *left,
                          float *future)
{
    for (int g = 0; g < s->group; g++)
        for (int j = first_key; j <= t; j++)
            left[j] -= (double)row[g][j - first_key] / s->group;
    for (int j = 0; j <= t; j++)
        future[j] = (float)(left[j] > 0 ? left[j] : 0);
}

/* ---- a group's rows ---- */

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
        if (sh_row_shares(score[g], t, first_key, q->limit, q->has_sinks, &s[g], e))
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
