/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_total.h. */
#include "planner/replay/replay_total.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

enum { DRAWS = 1000 };

struct pool {
    double sum[SH_N_REPLAY_FIGURE];
    double rows[SH_N_REPLAY_FIGURE];
};

struct head {
    struct pool pool;
    double policy_bytes;
    int n, peak;
};

struct sh_replay_total {
    int n_cell, n_layer, n_head, n_sequence;
    int *heads;                         /* [n_layer] */
    struct head *head;                  /* [cell][layer][head] */
    struct pool *sequence;              /* [cell][sequence][head]: of all layers, which count the same, however many
                                         * heads each has */
};

struct sh_replay_total *sh_replay_total_new(int n_cell, int n_layer, const int *heads, int n_head, int n_sequence)
{
    struct sh_replay_total *t = xcalloc(1, sizeof *t);
    t->heads = xmalloc((size_t)n_layer * sizeof *t->heads);
    memcpy(t->heads, heads, (size_t)n_layer * sizeof *t->heads);
    t->n_cell = n_cell;
    t->n_layer = n_layer;
    t->n_head = n_head;
    t->n_sequence = n_sequence;
    t->head = xcalloc((size_t)n_cell * (size_t)n_layer * (size_t)n_head, sizeof *t->head);
    t->sequence = xcalloc((size_t)n_cell * (size_t)n_sequence * (size_t)n_head, sizeof *t->sequence);
    return t;
}

void sh_replay_total_free(struct sh_replay_total *t)
{
    if (!t)
        return;
    free(t->heads);
    free(t->head);
    free(t->sequence);
    free(t);
}

static struct head *head_of(const struct sh_replay_total *t, int cell, int layer, int head)
{
    return &t->head[((size_t)cell * (size_t)t->n_layer + (size_t)layer) * (size_t)t->n_head + (size_t)head];
}

static struct pool *sequence_of(const struct sh_replay_total *t, int cell, int sequence)
{
    return &t->sequence[((size_t)cell * (size_t)t->n_sequence + (size_t)sequence) * (size_t)t->n_head];
}

static void pour(struct pool *p, const struct sh_replay_sums *s, double weight)
{
    for (int f = 0; f < SH_N_REPLAY_FIGURE; f++) {
        p->sum[f] += weight * s->sum[f];
        p->rows[f] += weight * (double)s->rows[f];
    }
}

void sh_replay_total_add(struct sh_replay_total *t, int cell, int sequence, int layer, const struct sh_replay_sums *s,
                         int step)
{
    for (int head = 0; head < t->heads[layer]; head++, s += step) {
        struct head *h = head_of(t, cell, layer, head);
        pour(&h->pool, s, 1);
        pour(&sequence_of(t, cell, sequence)[head], s, (double)t->n_head / t->heads[layer]);
        h->peak = s->peak_tokens > h->peak ? s->peak_tokens : h->peak;
        h->policy_bytes += (double)s->policy_bytes;
        h->n++;
    }
}

double sh_replay_total_head(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, int layer, int head)
{
    const struct pool *p = &head_of(t, cell, layer, head)->pool;
    return p->rows[f] > 0 ? p->sum[f] / p->rows[f] : (double)NAN;
}

double sh_replay_total_mean(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, int layer)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < (layer < 0 ? t->n_layer : t->n_head); i++) {
        double x = layer < 0 ? sh_replay_total_mean(t, cell, f, i) : sh_replay_total_head(t, cell, f, layer, i);
        sum += isnan(x) ? 0 : x;
        n += !isnan(x);
    }
    return n ? sum / n : (double)NAN;
}

int sh_replay_total_peak(const struct sh_replay_total *t, int cell)
{
    const struct head *all = head_of(t, cell, 0, 0);
    int peak = 0;
    for (int i = 0; i < t->n_layer * t->n_head; i++)
        peak = all[i].peak > peak ? all[i].peak : peak;
    return peak;
}

int sh_replay_total_heads(const struct sh_replay_total *t)
{
    int heads = 0;
    for (int l = 0; l < t->n_layer; l++)
        heads += t->heads[l];
    return heads;
}

double sh_replay_total_mean_peak(const struct sh_replay_total *t, int cell)
{
    const struct head *all = head_of(t, cell, 0, 0);
    double sum = 0;
    for (int i = 0; i < t->n_layer * t->n_head; i++)
        sum += all[i].peak;
    return sum / sh_replay_total_heads(t);
}

double sh_replay_total_policy_bytes(const struct sh_replay_total *t, int cell)
{
    const struct head *all = head_of(t, cell, 0, 0);
    double bytes = 0;
    int n = 0;
    for (int i = 0; i < t->n_layer * t->n_head; i++) {
        bytes += all[i].policy_bytes;
        n += all[i].n;
    }
    return n ? bytes / n : 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int sh_replay_total_interval(const struct sh_replay_total *t, int cell, enum sh_replay_figure f, uint64_t seed,
                             double *low, double *high)
{
    double *sum = xcalloc((size_t)t->n_sequence, sizeof *sum), *rows = xcalloc((size_t)t->n_sequence, sizeof *rows);
    double *mean = xcalloc(DRAWS, sizeof *mean);
    int n = 0;
    for (int s = 0; s < t->n_sequence; s++) {
        for (int h = 0; h < t->n_head; h++) {
            sum[n] += sequence_of(t, cell, s)[h].sum[f];
            rows[n] += sequence_of(t, cell, s)[h].rows[f];
        }
        if (rows[n] > 0)
            n++;
        else
            sum[n] = 0;
    }
    for (int d = 0; d < DRAWS && n > 1; d++) {
        double total = 0, count = 0;
        for (int i = 0; i < n; i++) {
            int k = (int)(sh_rng_uniform(seed, (uint64_t)d * (uint64_t)n + (uint64_t)i) * n);
            total += sum[k];
            count += rows[k];
        }
        mean[d] = total / count;
    }
    qsort(mean, DRAWS, sizeof *mean, ascending);
    *low = mean[DRAWS / 40];
    *high = mean[DRAWS - 1 - DRAWS / 40];
    free(sum);
    free(rows);
    free(mean);
    return n > 1 ? 0 : -1;
}

double sh_area_mean(const double *x, const double *y, int n)
{
    double area = 0;
    for (int i = 1; i < n; i++)
        area += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
    return n > 1 && x[n - 1] > x[0] ? area / (x[n - 1] - x[0]) : (double)NAN;
}
