/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_row.h. Sums in a fixed number of lanes, so that every machine gets the same. */
#include "planner/replay/replay_row.h"

#include <string.h>

#include "planner/policy/simd_gather.h"
#include "src/base/clones.h"

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

int sh_row_shares(const float *score, int t, int first_key, float limit, struct sh_row_shares *out, struct sh_err *e)
{
    struct sh_row_shares s;
    s.mass = sh_row_sum(score, t + 1 - first_key, limit, &s.above);
    if (!(s.mass > 0.95 && s.mass < 1.05))
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
