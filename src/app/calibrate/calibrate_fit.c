/* SPDX-License-Identifier: Apache-2.0 */
/* See calibrate.h: the fit of a few factors to a few runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/calibrate/calibrate.h"
#include "src/base/mem.h"

const char *const sh_calibrate_group_names[SH_N_GROUP] = {"memory", "products", "prompts", "layers", "sums", "host",
                                                          "requests"};

static enum sh_calibrate_group group_of(enum sh_clock_constant k)
{
    static const enum sh_clock_constant last[SH_N_GROUP] = {
        SH_CLOCK_state_memory, SH_CLOCK_decode_attention, SH_CLOCK_routed, SH_CLOCK_blocks, SH_CLOCK_link,
        SH_CLOCK_sequence, SH_CLOCK_token};
    int g = 0;
    if (k == SH_CLOCK_launch)
        return SH_GROUP_PROMPTS;
    while (k > last[g])
        g++;
    return (enum sh_calibrate_group)g;
}

/* Times grow by the factor: shares of a peak fall by it. */
static void apply(const struct sh_engine *from, enum sh_generation gen, const double x[SH_N_GROUP],
                  struct sh_engine *to)
{
    for (int k = 0; k < SH_N_CLOCK_CONSTANT; k++) {
        const struct sh_clock_key *key = &sh_clock_keys[k];
        int is_share = !strcmp(key->unit, "1");
        double f = exp(x[group_of((enum sh_clock_constant)k)]), value = from->constant[gen][k] * (is_share ? 1 / f : f);
        to->constant[gen][k] = fmin(fmax(value, key->low), key->high);
    }
}

enum { STEPS = 8 };
static const double width = 0.3;        /* of the factors' logarithms around 0                     */
static const double noise = 0.05;       /* of a measured time: repetitions are 2 to 5 % apart      */

/* Logarithmic errors of the times, TPOT then TTFT (NaN: none): [2 n]. */
static int errors(struct sh_calibrate *c, double *to, struct sh_err *e)
{
    if (sh_calibrate_predict(c, 0, e))
        return -1;
    for (int i = 0; i < c->runs.n; i++) {
        to[2 * i] = log(c->at[i].tpot_s / c->at[i].run->tpot_s);
        to[2 * i + 1] = log(c->at[i].ttft_s / c->at[i].run->ttft_s);
    }
    return 0;
}

/* TTFT counts half: it is twice as noisy. An error beyond 3 deviations counts as an absolute one. */
static double weight(double error, int is_ttft)
{
    double w = (is_ttft ? 0.25 : 1) / (noise * noise), far = fabs(error) / (3 * noise);
    return isnan(error) ? 0 : far > 1 ? w / far : w;
}

static double loss(const double *r, int n, const double x[SH_N_GROUP])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += isnan(r[i]) ? 0 : weight(r[i], i % 2) * r[i] * r[i];
    for (int g = 0; g < SH_N_GROUP; g++)
        sum += x[g] * x[g] / (width * width);
    return sum;
}

/* Solves the symmetric positive system a x = b by elimination; a prior on the diagonal keeps it regular. */
static void solve(double a[SH_N_GROUP][SH_N_GROUP], double b[SH_N_GROUP])
{
    for (int i = 0; i < SH_N_GROUP; i++)
        for (int k = i + 1; k < SH_N_GROUP; k++) {
            double f = a[k][i] / a[i][i];
            for (int j = i; j < SH_N_GROUP; j++)
                a[k][j] -= f * a[i][j];
            b[k] -= f * b[i];
        }
    for (int i = SH_N_GROUP - 1; i >= 0; i--) {
        for (int j = i + 1; j < SH_N_GROUP; j++)
            b[i] -= a[i][j] * b[j];
        b[i] /= a[i][i];
    }
}

struct fit {
    struct sh_calibrate *c;
    struct sh_engine from, *to;
    enum sh_generation gen;
    int n;                              /* errors                                                 */
    double *r, *tried, *slope;          /* [n], [n], [SH_N_GROUP][n]                              */
};

static int evaluate(struct fit *f, const double x[SH_N_GROUP], double *to, struct sh_err *e)
{
    apply(&f->from, f->gen, x, f->to);
    return errors(f->c, to, e);
}

/* A Gauss-Newton step from x, halved while it does not help; *is_done: nothing helps any more. */
static int step(struct fit *f, double x[SH_N_GROUP], int *is_done, struct sh_err *e)
{
    double a[SH_N_GROUP][SH_N_GROUP] = {{0}}, b[SH_N_GROUP], y[SH_N_GROUP], now = loss(f->r, f->n, x);
    const double by = 0.02;
    for (int g = 0; g < SH_N_GROUP; g++) {
        memcpy(y, x, sizeof y);
        y[g] += by;
        if (evaluate(f, y, f->slope + (size_t)g * (size_t)f->n, e))
            return -1;
    }
    for (int g = 0; g < SH_N_GROUP; g++) {
        b[g] = -x[g] / (width * width);
        a[g][g] = 1 / (width * width);
    }
    for (int i = 0; i < f->n; i++) {
        double w = weight(f->r[i], i % 2), d[SH_N_GROUP];
        for (int g = 0; g < SH_N_GROUP && w > 0; g++)
            d[g] = (f->slope[(size_t)g * (size_t)f->n + (size_t)i] - f->r[i]) / by;
        for (int g = 0; g < SH_N_GROUP && w > 0; g++) {
            b[g] -= w * d[g] * f->r[i];
            for (int k = 0; k < SH_N_GROUP; k++)
                a[g][k] += w * d[g] * d[k];
        }
    }
    solve(a, b);
    *is_done = 1;
    for (double length = 1; length > 0.05 && *is_done; length /= 2) {
        for (int g = 0; g < SH_N_GROUP; g++)
            y[g] = x[g] + length * b[g];
        if (evaluate(f, y, f->tried, e))
            return -1;
        if (loss(f->tried, f->n, y) < now * (1 - 1e-4)) {
            memcpy(x, y, sizeof y);
            memcpy(f->r, f->tried, (size_t)f->n * sizeof *f->r);
            *is_done = 0;
        }
    }
    return 0;
}

int sh_calibrate_fit(struct sh_calibrate *c, double factor[SH_N_GROUP], struct sh_err *e)
{
    const struct sh_calibrate_run *first = c->at;
    struct fit f = {.c = c, .to = &c->engine[first->run->engine], .gen = first->generation, .n = 2 * c->runs.n};
    double x[SH_N_GROUP] = {0};
    for (int i = 1; i < c->runs.n; i++)
        if (c->at[i].run->engine != first->run->engine || c->at[i].generation != f.gen)
            return sh_misused(e, "run %d was measured with %s on %s, but run 1 with %s on %s: a profile describes one "
                              "engine and one generation of GPUs", i + 1, sh_scheduler_names[c->at[i].run->engine],
                              c->at[i].board.name, sh_scheduler_names[first->run->engine], first->board.name);
    f.from = *f.to;
    f.r = xcalloc((size_t)f.n, sizeof *f.r);
    f.tried = xcalloc((size_t)f.n, sizeof *f.tried);
    f.slope = xcalloc((size_t)f.n * SH_N_GROUP, sizeof *f.slope);
    int is_done = 0, bad = evaluate(&f, x, f.r, e);
    for (int i = 0; i < STEPS && !bad && !is_done; i++)
        bad = step(&f, x, &is_done, e);
    bad = bad || evaluate(&f, x, f.r, e);
    free(f.r);
    free(f.tried);
    free(f.slope);
    for (int g = 0; g < SH_N_GROUP; g++)
        factor[g] = exp(x[g]);
    return bad;
}
