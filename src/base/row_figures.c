/* SPDX-License-Identifier: Apache-2.0 */
/* See row_figures.h. Runs for every row of every head while a model is being traced, so the loops are
 * written to vectorise: integer reductions, and floating sums in a fixed number of lanes. */
#include "src/base/row_figures.h"

#include <float.h>
#include <string.h>

#include "src/base/num.h"
#include "src/base/clones.h"
#include "src/base/row_lanes.h"

/* ln x for normal x > 0 to about one unit in the last place. Polynomial: Cephes' logf. */
static inline float ln(float x)
{
    uint32_t u = sh_bits(x) - 0x3f3504f3u;              /* mantissa in [sqrt(1/2), sqrt(2)) */
    float exponent = (float)((int32_t)u >> 23);
    float f = sh_from_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, z = f * f;
    float y = 7.0376836292e-2f;
    y = y * f - 1.1514610310e-1f;
    y = y * f + 1.1676998740e-1f;
    y = y * f - 1.2420140846e-1f;
    y = y * f + 1.4249322787e-1f;
    y = y * f - 1.6668057665e-1f;
    y = y * f + 2.0000714765e-1f;
    y = y * f - 2.4999993993e-1f;
    y = y * f + 3.3333331174e-1f;
    y = y * f * z + exponent * -2.12194440e-4f - 0.5f * z;
    return f + y + exponent * 0.693359375f;
}

SH_CLONES static double entropy(const float *row, int n)
{
    double lane[LANES] = {0};
    for (int i = 0; i < n; i += LANES) {
        float x[LANES], term[LANES];
        int left = n - i;
        if (left >= LANES)
            memcpy(x, row + i, sizeof x);
        else
            for (int k = 0; k < LANES; k++)
                x[k] = k < left ? row[i + k] : 0.0f;
        for (int k = 0; k < LANES; k++)
            term[k] = x[k] >= FLT_MIN ? x[k] * ln(x[k]) : 0.0f;
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)term[k];
    }
    return -total(lane);
}

/* Non-negative floats order as their bits do. */
SH_CLONES static float largest(const float *row, int n)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t x = (int32_t)sh_bits(row[i]);
        most = x > most ? x : most;
    }
    return sh_from_bits((uint32_t)most);
}

SH_CLONES static int count_below(const float *row, int n, float limit)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += row[i] < limit;
    return count;
}

SH_CLONES static double sum_below(const float *row, int n, float limit)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += row[i + k] < limit ? (double)row[i + k] : 0.0;
    for (int k = 0; i + k < n; k++)
        lane[k] += row[i + k] < limit ? (double)row[i + k] : 0.0;
    return total(lane);
}

void sh_row_figures(const float *row, int n, struct sh_row_figures *out)
{
    float mean = sh_round_up(1.0 / n);
    int below = count_below(row, n, mean);
    double most = (double)largest(row, n);
    *out = (struct sh_row_figures){
        .entropy = entropy(row, n),
        .mass_top = sh_row_mass_top(row, n, n - below),
        .low_mass = sum_below(row, n, mean),
        .below_1pct = (uint32_t)count_below(row, n, sh_round_up(0.01 * most)),
    };
}
