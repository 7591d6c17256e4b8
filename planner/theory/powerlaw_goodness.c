/* SPDX-License-Identifier: Apache-2.0 */
/* See powerlaw.h. */
#include "planner/theory/powerlaw.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

/* ---- the bootstrap ---- */

/* The parts that replicas are drawn from. */
struct source {
    const struct sh_powerlaw *fit;
    const double *body;                 /* [n_body] the sample's values below xmin                */
    size_t n_body;
};

/* Two numbers a value: which part it comes from, and where in it. */
static void draw(const struct source *from, uint64_t seed, double *out)
{
    const struct sh_powerlaw *fit = from->fit;
    double p_tail = (double)fit->n_tail / (double)fit->n;
    for (size_t i = 0; i < fit->n; i++) {
        double u = sh_rng_uniform(seed, 2 * i + 1);
        if (!from->n_body || sh_rng_uniform(seed, 2 * i) < p_tail)
            out[i] = fit->xmin * pow(u, -1 / (fit->exponent - 1));
        else
            out[i] = from->body[(size_t)(sh_rng(seed, 2 * i + 1) % from->n_body)];
    }
}

void sh_powerlaw_bootstrap(const double *x, size_t n, size_t max_candidate,
                           const struct sh_powerlaw *fit, int n_replica, uint64_t seed, struct sh_powerlaw_test *out)
{
    struct sh_powerlaw_test test = {.p = NAN};
    int n_worse = 0;
    *out = test;
    if (!isfinite(fit->ks) || fit->n > n || n_replica < 1)
        return;
    double *body = xcalloc(fit->n, sizeof *body), *replica = xcalloc(fit->n, sizeof *replica);
    struct source from = {.fit = fit, .body = body};
    for (size_t i = 0; i < n && from.n_body < fit->n; i++)
        if (x[i] > 0 && x[i] < fit->xmin)
            body[from.n_body++] = x[i];
    for (int i = 0; i < n_replica; i++) {
        struct sh_powerlaw again;
        draw(&from, sh_rng(seed, (uint64_t)i), replica);
        sh_powerlaw_scan(replica, fit->n, max_candidate, &again);
        if (isfinite(again.ks)) {
            test.n_replica++;
            n_worse += again.ks >= fit->ks;
        }
    }
    free(body);
    free(replica);
    if (test.n_replica) {
        test.p = (double)n_worse / test.n_replica;
        test.verdict = test.p > SH_POWERLAW_P ? SH_POWERLAW_PLAUSIBLE : SH_POWERLAW_REJECTED;
    }
    *out = test;
}

/* ---- rivals ---- */

/* With y = ln(x / xmin) the power law is an exponential law of y and the cut log-normal a normal law of y cut at 0, an
 * exponential family in (y, y^2): its maximum-likelihood fit is the one whose mean and variance are the tail's. */

/* Where the normal law is cut, in deviations above its mean: beyond this it is a power law for all that 53 bits can
 * tell. */
#define CUT_MAX 30.0
#define CUT_MIN (-30.0)

struct moments {
    double n, mean_x, mean_y, var_y;
};

static int in_tail(double x, const struct sh_powerlaw *fit)
{
    return x >= fit->xmin && isfinite(x);
}

static struct moments moments_of(const double *x, size_t n, const struct sh_powerlaw *fit)
{
    struct moments m = {0, 0, 0, 0};
    for (size_t i = 0; i < n; i++)
        if (in_tail(x[i], fit)) {
            m.n++;
            m.mean_x += x[i];
            m.mean_y += log(x[i] / fit->xmin);
        }
    m.mean_x /= m.n;
    m.mean_y /= m.n;
    for (size_t i = 0; i < n; i++)
        if (in_tail(x[i], fit)) {
            double gap = log(x[i] / fit->xmin) - m.mean_y;
            m.var_y += gap * gap / m.n;
        }
    return m;
}

void sh_powerlaw_against_exponential(const double *x, size_t n, const struct sh_powerlaw *fit,
                                     struct sh_powerlaw_rival *out)
{
    *out = (struct sh_powerlaw_rival){NAN, NAN};
    if (!isfinite(fit->exponent))
        return;
    struct moments m = moments_of(x, n, fit);
    double rate = 1 / (m.mean_x - fit->xmin), sum = 0, square = 0;
    if (!isfinite(rate))
        return;
    double constant = log((fit->exponent - 1) / fit->xmin / rate);
    double slope = fit->exponent, mean = constant - slope * m.mean_y + 1;
    for (size_t i = 0; i < n; i++)
        if (in_tail(x[i], fit)) {
            double gap = constant - slope * log(x[i] / fit->xmin) + rate * (x[i] - fit->xmin);
            sum += gap;
            square += (gap - mean) * (gap - mean);
        }
    out->ratio = sum;
    out->p = square > 0 ? erfc(fabs(sum) / sqrt(2 * square)) : sum == 0 ? 1 : 0;
}

/* P(Z > t) of a standard normal, and the mean of Z beyond t. */
static double beyond(double t)
{
    return 0.5 * erfc(t / sqrt(2));
}

static double hazard(double t)
{
    return exp(-t * t / 2) / sqrt(2 * acos(-1)) / beyond(t);
}

/* Variance over squared mean of a standard normal's excess beyond t; rises with t from 0 to 1. */
static double spread(double t)
{
    double h = hazard(t);
    return (1 - h * (h - t)) / ((h - t) * (h - t));
}

void sh_powerlaw_against_lognormal(const double *x, size_t n, const struct sh_powerlaw *fit,
                                   struct sh_powerlaw_rival *out)
{
    *out = (struct sh_powerlaw_rival){NAN, NAN};
    if (!isfinite(fit->exponent))
        return;
    struct moments m = moments_of(x, n, fit);
    double goal = m.var_y / (m.mean_y * m.mean_y), low = CUT_MIN, high = CUT_MAX;
    if (!(m.mean_y > 0) || !(goal > spread(low)))
        return;                         /* hardly any variance: no maximum */
    *out = (struct sh_powerlaw_rival){0, 1};
    if (goal >= spread(high))
        return;
    for (int i = 0; i < 100; i++) {
        double middle = low + (high - low) / 2;
        *(spread(middle) < goal ? &low : &high) = middle;
    }
    /* y = deviation (Z - t) for Z > t; what the x-densities have in common is left out. */
    double t = low, deviation = m.mean_y / (hazard(t) - t), rate = fit->exponent - 1;
    double power = log(rate) - rate * m.mean_y;
    double mean_z2 = (m.var_y + m.mean_y * m.mean_y) / (deviation * deviation) +
                     2 * t * m.mean_y / deviation + t * t;
    double normal = -0.5 * mean_z2 - 0.5 * log(2 * acos(-1)) - log(deviation * beyond(t));
    out->ratio = fmin(m.n * (power - normal), 0);
    out->p = 0.5 * erfc(sqrt(-out->ratio));
}
