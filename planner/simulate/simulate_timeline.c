/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_timeline.h. */
#include "planner/simulate/simulate_timeline.h"

#include <math.h>
#include <string.h>

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
