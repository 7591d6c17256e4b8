/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. */
#include "planner/replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policy/vectors.h"
#include "planner/replay/replay_row.h"
#include "src/base/clones.h"
#include "src/base/mem.h"

struct sh_replay_bound {
    struct sh_replay_setup setup;
    int most, n_row, is_summed;         /* most: tokens that a row sees */
    struct sh_replay_query query;
    float *sorted, *spare;              /* [n_token] */
    double *got[SH_N_LINEAR];           /* [1 + most]: what place b of the best order got; place 0: itself */
    double *pivots;                     /* [2 + most]: one query head: steps in got[SH_PIVOTAL_RECALL] */
    double *upto[SH_N_LINEAR];
    long long rows[SH_N_LINEAR], whole[SH_N_LINEAR];
};

struct sh_replay_bound *sh_replay_bound_new(const struct sh_replay_setup *setup)
{
    struct sh_replay_bound *b = xcalloc(1, sizeof *b);
    size_t n = (size_t)setup->n_token;
    b->setup = *setup;
    b->most = setup->window > 0 && setup->window < setup->n_token ? setup->window : setup->n_token;
    sh_replay_query_begin(&b->query, setup->n_token, setup->group);
    b->query.has_sinks = setup->has_sinks;
    b->sorted = xcalloc(n + 1, sizeof *b->sorted);
    b->spare = xcalloc(n + 1, sizeof *b->spare);
    b->pivots = xcalloc(n + 2, sizeof *b->pivots);
    for (int f = 0; f < SH_N_LINEAR; f++) {
        b->got[f] = xcalloc(n + 1, sizeof(double));
        b->upto[f] = xcalloc(n + 1, sizeof(double));
    }
    return b;
}

void sh_replay_bound_free(struct sh_replay_bound *b)
{
    if (!b)
        return;
    sh_replay_query_end(&b->query);
    free(b->sorted);
    free(b->spare);
    free(b->pivots);
    for (int f = 0; f < SH_N_LINEAR; f++) {
        free(b->got[f]);
        free(b->upto[f]);
    }
    free(b);
}

SH_CLONES static void add(double *restrict to, const float *restrict x, double factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += (double)x[i] * factor;
}

/* Weights that keys [first, t) have in a figure, and what t itself has. */
static void add_best(struct sh_replay_bound *b, enum sh_replay_figure f, const float *weight, int first)
{
    int n = b->query.t > first ? b->query.t - first : 0;
    memcpy(b->sorted, weight + first + 1, (size_t)n * sizeof(float));
    sh_descending(b->sorted, b->spare, n);
    b->got[f][0] += (double)weight[b->query.t + 1];
    add(b->got[f] + 1, b->sorted, 1, n);
}

/* One sorted array serves the mass with and without sinks: the sinks go in between where they belong. */
static void add_with_sinks(struct sh_replay_bound *b, double *mass, double scale, const float *sink, int n_sink, int n)
{
    int from = 0;
    for (int s = 0; s <= n_sink; s++) {
        int low = from, high = n;       /* the first place that is not above this sink */
        while (s < n_sink && low < high) {
            int middle = (low + high) / 2;
            if (b->sorted[middle] > sink[s])
                low = middle + 1;
            else
                high = middle;
        }
        int to = s < n_sink ? low : n;
        add(mass + from + s, b->sorted + from, scale, to - from);
        if (s < n_sink)
            mass[to + s] += (double)sink[s] * scale;
        from = to;
    }
}

static void add_single(struct sh_replay_bound *b)
{
    const struct sh_replay_query *q = &b->query;
    const float *row = q->row + 1;
    double self = (double)row[q->t], above = 0;
    float sink[SH_REPLAY_SINKS], spare[SH_REPLAY_SINKS];
    int first = q->first_key, n_sink = 0;
    for (; first < SH_REPLAY_SINKS && first < q->t; first++)
        sink[n_sink++] = row[first];
    int n = q->t - first;
    memcpy(b->sorted, row + first, (size_t)n * sizeof(float));
    sh_descending(b->sorted, b->spare, n);
    sh_descending(sink, spare, n_sink);
    b->got[SH_KEPT_MASS][0] += self * (double)q->scale[SH_KEPT_MASS];
    add_with_sinks(b, b->got[SH_KEPT_MASS] + 1, (double)q->scale[SH_KEPT_MASS], sink, n_sink, n);
    add(b->got[SH_KEPT_MASS_NO_SINK] + 1, b->sorted, (double)q->scale[SH_KEPT_MASS_NO_SINK], n);
    if (!q->has[SH_PIVOTAL_RECALL])
        return;
    above = (double)q->scale[SH_PIVOTAL_RECALL];        /* 1 / pivotal keys */
    int others = (int)(1 / above + 0.5), is_self = self > (double)q->limit;
    b->got[SH_PIVOTAL_RECALL][0] += is_self ? above : 0;
    b->pivots[1] += above;
    b->pivots[1 + others - is_self] -= above;
}

int sh_replay_bound_row(struct sh_replay_bound *b, int t, int first_key, const float *const *row, struct sh_err *e)
{
    if (sh_replay_query_row(&b->query, t, first_key, row, e))
        return -1;
    int whole = t < b->setup.prefill;
    for (int f = 0; f < SH_N_LINEAR; f++) {
        b->rows[f] += b->query.has[f] > 0;
        b->whole[f] += whole && b->query.has[f] > 0;
    }
    if (!whole && b->setup.group == 1)
        add_single(b);
    for (int f = 0; f < SH_N_LINEAR && !whole && b->setup.group > 1; f++)
        add_best(b, (enum sh_replay_figure)f, b->query.weight[f], first_key);
    b->n_row = t + 1;
    b->is_summed = 0;
    return 0;
}

static void sum_up(struct sh_replay_bound *b)
{
    for (int f = 0; f < SH_N_LINEAR; f++) {
        double sum = (double)b->whole[f], step = 0;
        for (int i = 0; i < b->most; i++) {
            step += f == SH_PIVOTAL_RECALL ? b->pivots[i] : 0;
            b->upto[f][i] = sum += b->got[f][i] + step;
        }
    }
    b->is_summed = 1;
}

void sh_replay_bound_sums(struct sh_replay_bound *b, int budget, struct sh_replay_sums *out)
{
    int n = b->n_row, prefill = b->setup.prefill > 0 ? b->setup.prefill : 0, early = prefill < n ? prefill : n;
    budget = budget < b->most ? budget : b->most;
    *out = (struct sh_replay_sums){.peak_tokens = 0};
    if (!b->is_summed)
        sum_up(b);
    for (int f = 0; f < SH_N_LINEAR; f++) {
        out->sum[f] = b->upto[f][budget - 1];
        out->rows[f] = b->rows[f];
    }
    int grown = budget < n ? budget : n;
    grown = grown > early ? grown : early;
    out->peak_tokens = grown;
    out->rows[SH_OCCUPANCY] = n;
    out->sum[SH_OCCUPANCY] = (double)grown * (grown + 1) / 2 + (double)(n - grown) * budget;
}
