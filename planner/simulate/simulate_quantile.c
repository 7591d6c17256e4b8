/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_quantile.h. */
#include "planner/simulate/simulate_quantile.h"

#include <math.h>

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
