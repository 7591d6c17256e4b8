/* SPDX-License-Identifier: Apache-2.0 */
/* See bound.h. */
#include "planner/theory/bound.h"

#include <math.h>

#define LN_B_MAX 12.0
#define N_STEP 48                       /* of the grid: a half in ln b */
#define N_ROOT 100                      /* about ten are needed */

/* The profile at one b: S and P = sum x / (x + b) = -dS / d ln b. */
struct profile {
    double s, p;
};

static struct profile profile_at(const double *x, size_t n, double ln_b)
{
    struct profile at = {0, 0};
    double b = exp(ln_b);
    for (size_t i = 0; i < n; i++)
        if (x[i] > 0 && isfinite(x[i])) {
            at.s += log1p(x[i] / b);
            at.p += x[i] / (x[i] + b);
        }
    return at;
}

static double loglik(const struct profile *at, double n, double ln_b)
{
    return n * log(n / at->s) - n * ln_b - at->s - n;
}

/* d loglik / d ln b, per value. */
static double slope_at(const double *x, size_t n, double count, double ln_b)
{
    struct profile at = profile_at(x, n, ln_b);
    return at.p / at.s - 1 + at.p / count;
}

/* Where the slope changes its sign between low (> 0) and high (< 0): false position, halving the weight of an end that
 * stays (the Illinois rule). */
static double top_between(const double *x, size_t n, double count, double low, double high)
{
    double at_low = slope_at(x, n, count, low), at_high = slope_at(x, n, count, high), at = low;
    int last = 0;
    for (int i = 0; i < N_ROOT && high - low > 1e-13; i++) {
        double before = at;
        at = (low * at_high - high * at_low) / (at_high - at_low);
        if (!(at > low && at < high))
            at = low + (high - low) / 2;
        double here = slope_at(x, n, count, at);
        if (here == 0 || (i > 0 && fabs(at - before) < 1e-13))
            break;
        if (here > 0) {
            low = at;
            at_low = here;
            at_high /= last == 1 ? 2 : 1;
            last = 1;
        } else {
            high = at;
            at_high = here;
            at_low /= last == -1 ? 2 : 1;
            last = -1;
        }
    }
    return at;
}

void sh_lomax_fit(const double *x, size_t n, struct sh_lomax *out)
{
    struct sh_lomax fit = {0, NAN, NAN, NAN};
    struct profile at;
    double best = -INFINITY, step = 2 * LN_B_MAX / N_STEP, top = -LN_B_MAX;
    for (size_t i = 0; i < n; i++)
        fit.n += x[i] > 0 && isfinite(x[i]);
    double count = (double)fit.n;
    for (int i = 0; fit.n && i <= N_STEP; i++) {
        at = profile_at(x, n, -LN_B_MAX + i * step);
        double value = loglik(&at, count, -LN_B_MAX + i * step);
        if (value > best) {
            best = value;
            top = -LN_B_MAX + i * step;
        }
    }
    *out = fit;
    double low = fmax(top - step, -LN_B_MAX), high = fmin(top + step, LN_B_MAX);
    if (!fit.n || !(slope_at(x, n, count, low) > 0) || !(slope_at(x, n, count, high) < 0))
        return;
    double ln_b = top_between(x, n, count, low, high);
    at = profile_at(x, n, ln_b);
    *out = (struct sh_lomax){fit.n, 1 + count / at.s, exp(ln_b), loglik(&at, count, ln_b)};
}
