/* SPDX-License-Identifier: Apache-2.0 */
/* Fits of tails: against the shared fixtures (attention of five model families, synthetic samples),
 * against scans and searched likelihoods of tests/oracle/theory.py, on samples of known laws,
 * and on odd input. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "planner/theory/powerlaw.h"
#include "planner/theory/theory_sample.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/heads.h"

#define THEORY "../theory/"             /* heads.h looks into golden/persistence */

static void check_fit(const struct sh_powerlaw *fit, const json_t *want)
{
    CU_ASSERT(heads_near(fit->xmin, heads_real(want, "xmin"), 1e-12));
    CU_ASSERT(fit->n_tail == (size_t)heads_int(want, "n_tail"));
    CU_ASSERT(heads_near(fit->exponent, heads_real(want, "exponent"), 1e-9));
    CU_ASSERT(heads_near(fit->sigma, heads_real(want, "sigma"), 1e-9));
    CU_ASSERT(heads_near(fit->ks, heads_real(want, "ks"), 1e-9));
}

static void check_lomax(const struct sh_lomax *fit, const json_t *want)
{
    if (json_is_null(want)) {
        CU_ASSERT(isnan(fit->k) && isnan(fit->b) && isnan(fit->loglik));
        return;
    }
    CU_ASSERT(fit->n == (size_t)heads_int(want, "n"));
    CU_ASSERT(heads_near(fit->k, heads_real(want, "k"), 1e-5));
    CU_ASSERT(heads_near(fit->b, heads_real(want, "b"), 1e-5));
    CU_ASSERT(heads_near(fit->loglik, heads_real(want, "loglik"), 1e-9));
}

/* ---- the shared fixtures ---- */

static void check_head(const double *x, size_t n, const json_t *tail)
{
    struct sh_powerlaw fit;
    struct sh_lomax lomax;
    sh_powerlaw_scan(x, n, 0, &fit);
    CU_ASSERT(fit.n == n);
    check_fit(&fit, json_object_get(tail, "scan"));
    sh_lomax_fit(x, n, &lomax);
    check_lomax(&lomax, json_object_get(tail, "lomax"));
}

static void check_source(const json_t *source)
{
    size_t n_float, n, i;
    json_t *head;
    float *packed = heads_floats(json_string_value(json_object_get(source, "file")), &n_float);
    const float *at = packed;
    int length = heads_int(source, "T"), split = heads_int(source, "split");
    json_array_foreach(json_object_get(source, "heads"), i, head) {
        json_t *tail = json_object_get(head, "tail");
        size_t layer = (size_t)heads_int(head, "layer");
        int window = (int)json_integer_value(json_array_get(json_object_get(source, "windows"), layer));
        struct sh_theory_sample *s = sh_theory_sample_new(100000, 1);
        struct sh_theory_seen seen;
        for (int q = 0; q < length; q++) {
            int first_key, n_q = heads_row(q, window, &first_key);
            sh_theory_sample_row(s, split, q, n_q, at);
            at += n_q;
        }
        const double *x = sh_theory_sample_values(s, &n);
        sh_theory_sample_seen(s, &seen);
        CU_ASSERT(seen.rows == (uint64_t)(length - split) && seen.values == n && seen.share == 1);
        CU_ASSERT(n == (size_t)heads_int(tail, "n"));
        CU_ASSERT(heads_near(seen.largest, heads_real(tail, "max"), 1e-12));
        check_head(x, n, tail);
        sh_theory_sample_free(s);
    }
    CU_ASSERT(at == packed + n_float);
    free(packed);
}

static void tails_of_five_families(void)
{
    size_t i;
    json_t *root = heads_json(THEORY "metrics.json"), *source;
    CU_ASSERT(json_array_size(json_object_get(root, "sources")) == 5);
    json_array_foreach(json_object_get(root, "sources"), i, source)
        check_source(source);
    json_decref(root);
}

/* A file of floats as doubles. */
static double *load(const json_t *entry, size_t *n)
{
    char *name = xasprintf(THEORY "%s", json_string_value(json_object_get(entry, "file")));
    float *x = heads_floats(name, n);
    double *wide = xcalloc(*n, sizeof *wide);
    for (size_t i = 0; i < *n; i++)
        wide[i] = x[i];
    free(name);
    free(x);
    return wide;
}

static void synthetic_samples(void)
{
    size_t i, n;
    json_t *root = heads_json(THEORY "metrics.json"), *entry;
    CU_ASSERT(json_array_size(json_object_get(root, "synthetic")) == 6);
    json_array_foreach(json_object_get(root, "synthetic"), i, entry) {
        double *x = load(entry, &n);
        struct sh_powerlaw fit;
        struct sh_lomax lomax;
        if (json_object_get(entry, "lomax")) {
            sh_lomax_fit(x, n, &lomax);
            check_lomax(&lomax, json_object_get(entry, "lomax"));
        } else {
            sh_powerlaw_scan(x, n, 0, &fit);
            check_fit(&fit, json_object_get(entry, "scan"));
        }
        free(x);
    }
    json_decref(root);
}

/* ---- the oracle's cases ---- */

static void check_rival(const struct sh_powerlaw_rival *found, const json_t *want)
{
    CU_ASSERT(heads_near(found->ratio, heads_real(want, "ratio"), 1e-7));
    /* A p far below what its tail function can tell apart is only small. */
    CU_ASSERT(heads_near(found->p, heads_real(want, "p"), 1e-6));
}

static void ties_and_rivals(void)
{
    size_t i, n;
    json_t *root = heads_json(THEORY "cases.json"), *entry;
    CU_ASSERT(json_array_size(json_object_get(root, "powerlaw")) == 4);
    json_array_foreach(json_object_get(root, "powerlaw"), i, entry) {
        double *x = load(entry, &n);
        struct sh_powerlaw fit;
        struct sh_powerlaw_rival rival;
        sh_powerlaw_scan(x, n, 0, &fit);
        check_fit(&fit, json_object_get(entry, "scan"));
        fit.xmin = 1;
        fit.exponent = heads_real(json_object_get(entry, "fixed_xmin_1"), "exponent");
        sh_powerlaw_against_exponential(x, n, &fit, &rival);
        check_rival(&rival, json_object_get(entry, "exponential"));
        sh_powerlaw_against_lognormal(x, n, &fit, &rival);
        check_rival(&rival, json_object_get(entry, "lognormal"));
        free(x);
    }
    json_decref(root);
}

/* ---- known laws ---- */

/* Pareto from xmin 1, or Lomax with b = 0.5, both with density exponent `a`. */
static double *known(int is_lomax, double a, size_t n, uint64_t seed)
{
    double *x = xcalloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        double y = pow(sh_rng_uniform(seed, i), -1 / (a - 1));
        x[i] = is_lomax ? 0.5 * (y - 1) : y;
    }
    return x;
}

static void known_laws_are_recovered(void)
{
    static const double exponent[] = {1.3, 1.8, 2.5, 3.5, 6};
    for (size_t i = 0; i < 5; i++) {
        size_t n = 20000;
        double *x = known(0, exponent[i], n, 100 + i);
        struct sh_powerlaw fit;
        sh_powerlaw_scan(x, n, 0, &fit);
        CU_ASSERT(fabs(fit.exponent - exponent[i]) < 3 * fit.sigma);
        free(x);
        x = known(1, exponent[i], n, 200 + i);
        struct sh_lomax lomax;
        sh_lomax_fit(x, n, &lomax);
        /* Deviation of k by the Fisher information: (k-1) k / sqrt(n). */
        double deviation = (exponent[i] - 1) * exponent[i] / sqrt((double)n);
        CU_ASSERT(fabs(lomax.k - exponent[i]) < 3 * deviation);
        free(x);
    }
}

/* The body is even below 1, the law begins there. */
static void a_tail_is_found(void)
{
    size_t n = 20000;
    double *x = known(0, 2.5, n, 7);
    for (size_t i = 0; i < n / 2; i++)
        x[i] = sh_rng_uniform(8, i);
    struct sh_powerlaw fit, few;
    sh_powerlaw_scan(x, n, 0, &fit);
    CU_ASSERT(fit.xmin > 0.9 && fit.xmin < 1.5);
    CU_ASSERT(fabs(fit.exponent - 2.5) < 3 * fit.sigma);
    CU_ASSERT(fit.n_candidate == n - 1);
    sh_powerlaw_scan(x, n, 500, &few);
    CU_ASSERT(few.n_candidate > 300 && few.n_candidate <= 500);
    CU_ASSERT(few.ks >= fit.ks && few.ks < 1.2 * fit.ks);
    CU_ASSERT(fabs(few.exponent - fit.exponent) < 2 * fit.sigma);

    /* So is a tail of 60 at the very end, by few candidates, too. */
    for (size_t i = 0; i < n; i++)
        x[i] = pow(sh_rng_uniform(11, i), i < 60 ? -1 / 1.5 : 1);
    sh_powerlaw_scan(x, n, 0, &fit);
    sh_powerlaw_scan(x, n, 100, &few);
    CU_ASSERT(fit.n_tail > 40 && fit.n_tail < 80 && few.n_candidate <= 100 && few.ks < 1.2 * fit.ks);
    free(x);
}

static void bootstrap_tells_laws_apart(void)
{
    size_t n = 800;
    struct sh_powerlaw fit;
    struct sh_powerlaw_test test, again;
    int n_plausible = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        double *x = known(0, 2.2, n, 300 + seed);
        sh_powerlaw_scan(x, n, 0, &fit);
        sh_powerlaw_bootstrap(x, n, 0, &fit, 50, seed, &test);
        CU_ASSERT(test.n_replica == 50 && test.p >= 0 && test.p <= 1);
        n_plausible += test.verdict == SH_POWERLAW_PLAUSIBLE;
        free(x);
    }
    CU_ASSERT(n_plausible >= 7);                        /* 9 of 10 on average */

    /* A short tail after a long body: replicas must have both. */
    double *x = xcalloc(n, sizeof *x);
    n_plausible = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        for (size_t i = 0; i < n; i++)
            x[i] = sh_rng_uniform(400 + seed, i);
        for (size_t i = 0; i < n / 10; i++)
            x[i] = pow(x[i], -1 / 1.2);
        sh_powerlaw_scan(x, n, 0, &fit);
        sh_powerlaw_bootstrap(x, n, 0, &fit, 50, seed, &test);
        n_plausible += test.verdict == SH_POWERLAW_PLAUSIBLE;
    }
    CU_ASSERT(n_plausible >= 3);

    /* Two heaps: no tail of any length is a power law, short of the very end. */
    for (size_t i = 0; i < n; i++)
        x[i] = (i % 2 ? 100 : 1) * (1 + 0.05 * sh_rng_uniform(9, i));
    sh_powerlaw_scan(x, n, 0, &fit);
    sh_powerlaw_bootstrap(x, n, 0, &fit, 50, 1, &test);
    sh_powerlaw_bootstrap(x, n, 0, &fit, 50, 1, &again);
    CU_ASSERT(test.verdict == SH_POWERLAW_REJECTED);
    CU_ASSERT(test.p == again.p);
    sh_powerlaw_bootstrap(x, n, 0, &fit, 0, 1, &test);
    CU_ASSERT(test.verdict == SH_POWERLAW_NO_FIT && isnan(test.p));
    free(x);
}

/* ---- odd input ---- */

static int is_blank(const struct sh_powerlaw *fit)
{
    return isnan(fit->exponent) && isnan(fit->sigma) && isnan(fit->ks);
}

static void check_nothing(const double *x, size_t n, size_t n_usable)
{
    struct sh_powerlaw fit;
    struct sh_powerlaw_test test;
    struct sh_powerlaw_rival rival;
    struct sh_lomax lomax;
    sh_powerlaw_scan(x, n, 0, &fit);
    CU_ASSERT(is_blank(&fit) && isnan(fit.xmin) && fit.n == n_usable && !fit.n_tail);
    sh_powerlaw_bootstrap(x, n, 0, &fit, 5, 1, &test);
    CU_ASSERT(test.verdict == SH_POWERLAW_NO_FIT && isnan(test.p) && !test.n_replica);
    sh_powerlaw_against_exponential(x, n, &fit, &rival);
    CU_ASSERT(isnan(rival.ratio) && isnan(rival.p));
    sh_powerlaw_against_lognormal(x, n, &fit, &rival);
    CU_ASSERT(isnan(rival.ratio) && isnan(rival.p));
    sh_lomax_fit(x, n, &lomax);
    CU_ASSERT(lomax.n == n_usable && isnan(lomax.k));
}

static void odd_samples(void)
{
    static const double one[] = {2}, equal[] = {3, 3, 3, 3}, none[] = {0, -1, NAN, INFINITY, -INFINITY},
                        two[] = {1, 2}, mixed[] = {NAN, 1, 0, 2, INFINITY, -4};
    struct sh_powerlaw fit, same;
    check_nothing(NULL, 0, 0);
    check_nothing(one, 1, 1);
    check_nothing(equal, 4, 4);
    check_nothing(none, 5, 0);
    sh_powerlaw_scan(two, 2, 0, &fit);
    CU_ASSERT(fit.xmin == 1 && heads_near(fit.exponent, 1 + 2 / log(2), 1e-12));
    sh_powerlaw_scan(mixed, 6, 0, &same);
    CU_ASSERT(same.n == 2 && same.exponent == fit.exponent && same.ks == fit.ks);
}

/* Rounding must not matter where values lie close together or far apart. */
static void extreme_values(void)
{
    static const double close[] = {3, 3 + 0x1p-50, 3 + 0x1p-49, 3 + 0x1p-48},
                        far[] = {1e-300, 1e-100, 1, 1e100, 1e300};
    struct sh_powerlaw fit;
    sh_powerlaw_scan(close, 4, 1, &fit);                /* 7 units of 2^-50 above the first */
    CU_ASSERT(fit.xmin == 3 && heads_near(fit.exponent, 1 + 4 / (7 * 0x1p-50 / 3), 1e-9));
    sh_powerlaw_scan(close, 4, 0, &fit);
    CU_ASSERT(isfinite(fit.ks) && fit.ks <= 1);
    sh_powerlaw_scan(far, 5, 0, &fit);
    CU_ASSERT(isfinite(fit.exponent) && fit.exponent > 1 && fit.ks <= 1);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"tails of five model families equal the fixtures", tails_of_five_families},
        {"synthetic samples equal the fixtures", synthetic_samples},
        {"ties, and other laws of the same tail", ties_and_rivals},
        {"exponents of known laws are recovered within three deviations", known_laws_are_recovered},
        {"the beginning of a tail is found", a_tail_is_found},
        {"the bootstrap keeps power laws and rejects two heaps", bootstrap_tells_laws_apart},
        {"empty, single, equal and impossible values", odd_samples},
        {"values very close together and very far apart", extreme_values},
        {NULL, NULL},
    };
    return tap_run("powerlaw", tests);
}
