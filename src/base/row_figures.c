/* SPDX-License-Identifier: Apache-2.0 */
/* See row_figures.h. Runs for every row of every head while a model is being traced, so the loops are
 * written to vectorise: integer reductions, and floating sums in a fixed number of lanes. */
#include "src/base/row_figures.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "src/base/num.h"
#include "src/base/clones.h"

#define LANES 16                        /* partial sums; fixed, so results agree everywhere */
#define OCTAVE (1 << 23)                /* in the bits of a float */

/* Non-negative floats order as their bits do. */
static inline int32_t order(float x)
{
    return (int32_t)sh_bits(x);
}

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

static double total(const double lane[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
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

SH_CLONES static float largest(const float *row, int n)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t x = order(row[i]);
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

SH_CLONES static int count_from(const float *row, int n, int32_t least)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += order(row[i]) >= least;
    return count;
}

/* Sum of the entries whose bits are at least `least`. */
SH_CLONES static double sum_from(const float *row, int n, int32_t least)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += order(row[i + k]) >= least ? (double)row[i + k] : 0.0;
    for (int k = 0; i + k < n; k++)
        lane[k] += order(row[i + k]) >= least ? (double)row[i + k] : 0.0;
    return total(lane);
}

/* Find how far down the `want` largest reach: on return `from` of n entries lie at or above the
 * bits *least, and either from == want or what is too many are ties at *least. `least` and `from`
 * come in as any such pair. Each probe is one counting pass: gallop away from the start by octaves,
 * then interpolate (the counts are smooth over the logarithm), every third time halve. */
static int reach(const float *row, int n, int want, int32_t *least, int from)
{
    int64_t low = *least, high = low;   /* count(low) >= want > count(high) */
    int at_low = from, at_high = from;
    for (int64_t step = OCTAVE; at_low < want; step *= 2) {
        high = low, at_high = at_low;
        low = low > step ? low - step : 0;
        at_low = low ? count_from(row, n, (int32_t)low) : n;
    }
    for (int64_t step = OCTAVE; at_high >= want; step *= 2) {
        if (at_high == want || high == INT32_MAX) {
            *least = (int32_t)high;
            return at_high;
        }
        low = high, at_low = at_high;
        high = high + step < INT32_MAX ? high + step : INT32_MAX;
        at_high = count_from(row, n, (int32_t)high);
    }
    for (int probe = 1; at_low > want && high - low > 1; probe++) {
        double part = (at_low - want + 0.5) / (at_low - at_high);
        int64_t middle = low + (int64_t)((double)(high - low) * (probe % 3 ? part : 0.5));
        middle = middle <= low ? low + 1 : middle >= high ? high - 1 : middle;
        int count = count_from(row, n, (int32_t)middle);
        if (count >= want)
            low = middle, at_low = count;
        else
            high = middle, at_high = count;
    }
    *least = (int32_t)low;
    return at_low;
}

/* Mass of the `want` largest entries: exactly those, whatever the ties. `mean` = bits of the row's
 * mean, `from` = entries at or above it: a good place to start. */
static double mass_of_largest(const float *row, int n, int want, int32_t mean, int from)
{
    int32_t least = mean;
    int count = reach(row, n, want, &least, from);
    double ties = count > want ? (count - want) * (double)sh_from_bits((uint32_t)least) : 0;
    return sum_from(row, n, least) - ties;
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
        .mass_top = mass_of_largest(row, n, (n + 4) / 5, order(mean), n - below),
        .low_mass = sum_below(row, n, mean),
        .below_1pct = (uint32_t)count_below(row, n, sh_round_up(0.01 * most)),
    };
}
