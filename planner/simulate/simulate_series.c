/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate.h. */
#include "planner/simulate/simulate.h"

#include <math.h>
#include <string.h>

static const double lowest = 1e-6, factor = 1.001;

void sh_quantile_add(struct sh_quantile *q, double value)
{
    double at = value > lowest ? floor(log(value / lowest) / log(factor)) : 0;
    int i = at < SH_QUANTILE_CELLS - 1 ? (int)at : SH_QUANTILE_CELLS - 1;
    q->cell[i]++;
    q->sum += value;
    q->least = !q->n || value < q->least ? value : q->least;
    q->largest = !q->n || value > q->largest ? value : q->largest;
    q->n++;
}

double sh_quantile_at(const struct sh_quantile *q, double share)
{
    double exact = share * (double)q->n;        /* 0.07 is not exact: 0.07 of 100 is meant to be 7 */
    uint64_t rank = (uint64_t)ceil(exact * (1 - 0x1p-40)), seen = 0;
    if (!q->n)
        return (double)NAN;
    if (rank >= q->n)
        return q->largest;
    for (int i = 0; i < SH_QUANTILE_CELLS; i++) {
        seen += q->cell[i];
        if (seen >= rank && seen)
            return fmin(fmax(lowest * pow(factor, i + 0.5), q->least), q->largest);
    }
    return q->largest;
}

double sh_quantile_mean(const struct sh_quantile *q)
{
    return q->n ? q->sum / (double)q->n : (double)NAN;
}

void sh_timeline_start(struct sh_timeline *t, double width)
{
    memset(t, 0, sizeof *t);
    t->width = width;
}

static void halve(struct sh_timeline *t)
{
    for (int i = 0; i < SH_TIMELINE_BINS / 2; i++)
        t->sum[i] = t->sum[2 * i] + t->sum[2 * i + 1];
    memset(t->sum + SH_TIMELINE_BINS / 2, 0, sizeof t->sum / 2);
    t->width *= 2;
}

void sh_timeline_add(struct sh_timeline *t, double from, double to, double value)
{
    while (to > t->width * SH_TIMELINE_BINS)
        halve(t);
    t->end = fmax(t->end, to);
    int i = (int)(from / t->width), last = (int)(to / t->width);
    if (i >= SH_TIMELINE_BINS)
        return;                         /* from == to at the very end */
    if (i == last) {
        t->sum[i] += (to - from) * value;
        return;
    }
    t->sum[i] += ((i + 1) * t->width - from) * value;
    for (i++; i < last; i++)
        t->sum[i] += t->width * value;
    if (last < SH_TIMELINE_BINS)
        t->sum[last] += (to - last * t->width) * value;
}

int sh_timeline_count(const struct sh_timeline *t)
{
    int n = (int)ceil(t->end / t->width);
    return n > SH_TIMELINE_BINS ? SH_TIMELINE_BINS : n;
}

double sh_timeline_mean(const struct sh_timeline *t, int i)
{
    double passed = fmin(t->width, t->end - i * t->width);
    return passed > 0 ? t->sum[i] / passed : 0;
}
