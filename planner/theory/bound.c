/* SPDX-License-Identifier: Apache-2.0 */
/* See bound.h. */
#include "planner/theory/bound.h"

#include <float.h>
#include <math.h>

#include "src/base/clones.h"

double sh_bound_dropped(double rho, double k)
{
    if (!(rho >= 0 && rho <= 1 && k > 2 && isfinite(k)))
        return NAN;
    return 1 - (k - 1) * pow(rho, (k - 2) / (k - 1)) + (k - 2) * rho;
}

/* The integral of y^-a from 1 to e^ln_w. */
static double power_integral(double a, double ln_w)
{
    double s = (1 - a) * ln_w;
    return fabs(s) < 1e-12 ? ln_w : ln_w * expm1(s) / s;
}

double sh_bound_dropped_cut(double rho, double k, double b, double most)
{
    if (!(rho >= 0 && rho <= 1 && k > 1 && isfinite(k) && b > 0 && most > 0 && isfinite(most / b)))
        return NAN;
    double ln_r = log1p(most / b), beyond = exp((1 - k) * ln_r);
    double ln_w = fmin(-log(beyond + rho * (1 - beyond)) / (k - 1), ln_r);
    double all = power_integral(k - 1, ln_r) - power_integral(k, ln_r);
    return fmax(power_integral(k - 1, ln_w) - power_integral(k, ln_w), 0) / all;
}

void sh_bound_at(double rho, double k, double eps, struct sh_bound *out)
{
    struct sh_bound at = {.inner = NAN, .bound = NAN, .dropped = sh_bound_dropped(rho, k)};
    at.corrected = 2 * at.dropped;
    if (k > 1 && isfinite(k) && eps >= 0 && eps < rho && rho <= 1) {
        at.inner = k - (k - 1) * pow((1 - eps) / (rho - eps), 1 / (k - 1));
        at.bound = 2.1 * (1 - rho) / ((1 - eps) * (1 - eps)) * at.inner;
        at.informative = at.inner > 0;
        at.proven = at.informative && rho >= 0.5 && k > 2;
    }
    *out = at;
}

double sh_bound_failure(double rho, double k, double eps, double b, double u, double t_min, double t_max)
{
    if (!(k > 2 && b > 0 && u > b && eps > 0 && eps < 1 && rho > 0 && rho <= 1 && t_min >= 1 && t_max >= t_min))
        return NAN;
    double spread = eps * b / ((k - 2) * (u - b)), drop = (1 - rho) / (1 - eps);
    return t_max * (exp(-spread * spread * (t_min - 1)) + exp(-2 * drop * drop * (t_min - 1)));
}

/* ---- the density ---- */

#define LN_B_MAX 12.0
#define N_STEP 48                       /* of the grid: a half in ln b */
#define N_ROOT 100                      /* about ten are needed */

/* The profile at one b: S and P = sum x / (x + b) = -dS / d ln b. */
struct profile {
    double s, p;
};

/* For every lane l, the steps x of it: 1 + grown[l] becomes the product of all 1 + x / b, and p[l] the sum of
 * x / (x + b). Values that are no use count as 0. */
enum { N_LANE = 8, N_FACTOR = 4 };

SH_CLONES static void take_factors(const double *x, double one_over_b, double *restrict grown, double *restrict p)
{
    for (int i = 0; i < N_FACTOR; i++)
        for (int l = 0; l < N_LANE; l++) {
            double at = x[i * N_LANE + l], ratio = at > 0 && at <= DBL_MAX ? at * one_over_b : 0;
            grown[l] += ratio + grown[l] * ratio;
            p[l] += ratio / (1 + ratio);
        }
}

/* The logarithm of the product of a few factors instead of one for each. They are kept less 1, where their differences
 * from 1 are not rounded away; a product that is too large is taken apart. */
static struct profile profile_at(const double *x, size_t n, double ln_b)
{
    struct profile at = {0, 0};
    double b = exp(ln_b), p[N_LANE] = {0};
    size_t i = 0;
    for (; i + N_LANE * N_FACTOR <= n; i += N_LANE * N_FACTOR) {
        double grown[N_LANE] = {0};
        take_factors(x + i, 1 / b, grown, p);
        for (int l = 0; l < N_LANE; l++)
            at.s += log1p(grown[l]);
    }
    for (; i < n; i++)
        if (x[i] > 0 && isfinite(x[i])) {
            at.s += log1p(x[i] / b);
            at.p += x[i] / (x[i] + b);
        }
    for (int l = 0; l < N_LANE; l++)
        at.p += p[l];
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
