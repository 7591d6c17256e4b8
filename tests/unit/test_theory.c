/* SPDX-License-Identifier: Apache-2.0 */
/* Theory next to measurement: Theorem 4.1 and the dropped-mass law, what keeping the largest scores
 * costs, samples of bounded size, Theorem 3.1. Against the shared fixtures, tests/oracle/theory.py
 * and what the formulas must obey. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "planner/theory/theory_dropped.h"
#include "planner/theory/theory_repeat.h"
#include "planner/theory/theory_sample.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/heads.h"

#define THEORY "../theory/"             /* heads.h looks into golden/persistence */

/* ---- Theorem 4.1 and the dropped-mass law ---- */

static void table_of_bounds(void)
{
    size_t i;
    json_t *root = heads_json(THEORY "metrics.json"), *want;
    CU_ASSERT(json_array_size(json_object_get(root, "bound_table")) == 105);
    json_array_foreach(json_object_get(root, "bound_table"), i, want) {
        struct sh_bound at;
        double rho = heads_real(want, "budget_ratio"), k = heads_real(want, "k");
        sh_bound_at(rho, k, heads_real(want, "epsilon"), &at);
        CU_ASSERT(fabs(at.inner - heads_real(want, "inner")) < 1e-12 * (1 + fabs(at.inner)));
        CU_ASSERT(fabs(at.bound - heads_real(want, "bound")) < 1e-12 * (1 + fabs(at.bound)));
        CU_ASSERT(at.informative == json_is_true(json_object_get(want, "informative")));
        CU_ASSERT(heads_near(at.dropped, heads_real(want, "expected_dropped_share"), 1e-12));
        CU_ASSERT(heads_near(at.corrected, 2 * at.dropped, 1e-15));
        CU_ASSERT(at.proven == (at.informative && rho >= 0.5 && k > 2));
    }
    json_decref(root);
}

static void dropped_mass_law(void)
{
    for (double k = 2.05; k < 40; k *= 1.3) {
        double last = 1;
        CU_ASSERT(heads_near(sh_bound_dropped(0, k), 1, 1e-12));
        CU_ASSERT(fabs(sh_bound_dropped(1, k)) < 1e-12);
        for (int i = 1; i <= 100; i++) {
            double dropped = sh_bound_dropped(i / 100.0, k);
            CU_ASSERT(dropped < last && dropped > -1e-12);
            CU_ASSERT(dropped <= 1 - i / 100.0 + 1e-12);        /* never above an even row's */
            last = dropped;
        }
    }
    CU_ASSERT(fabs(sh_bound_dropped(0.2, 4) - 0.374) < 5e-4);   /* values worked out by hand */
    CU_ASSERT(fabs(sh_bound_dropped(0.5, 6) - 0.128) < 5e-4);
    /* The law against samples of the density itself: b cancels. */
    for (int k = 3; k <= 6; k++) {
        int n = 40000, budget = n / 5;
        float *x = xcalloc((size_t)n, sizeof *x);
        struct sh_theory_scratch *scratch = sh_theory_scratch_new();
        struct sh_theory_output out;
        for (int i = 0; i < n; i++)
            x[i] = (float)(0.7 * (pow(sh_rng_uniform(5, (uint64_t)i), -1.0 / (k - 1)) - 1));
        sh_theory_output_row(scratch, x, n, NULL, 0, &budget, 1, &out);
        CU_ASSERT(fabs(1 - out.kept - sh_bound_dropped(0.2, k)) < 0.02);
        sh_theory_scratch_free(scratch);
        free(x);
    }
}

/* The share of the sum that the smallest 1 - rho carry, by the midpoint rule over the quantiles. */
static double by_quantiles(double rho, double k, double b, double most)
{
    enum { N = 200000 };
    double low = pow(b, 1 - k), high = pow(b + most, 1 - k), all = 0, small = 0;
    for (int i = 0; i < N; i++) {
        double p = (i + 0.5) / N, x = pow(low - p * (low - high), 1 / (1 - k)) - b;
        all += x;
        small += p < 1 - rho ? x : 0;
    }
    return small / all;
}

static void dropped_mass_of_a_cut_law(void)
{
    static const double rho[] = {0.1, 0.2, 0.5, 0.75}, k[] = {1.2, 1.5, 2, 2.000001, 2.5, 4};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 6; j++) {
            double found = sh_bound_dropped_cut(rho[i], k[j], 0.3, 50);
            CU_ASSERT(fabs(found - by_quantiles(rho[i], k[j], 0.3, 50)) < 1e-3);
            CU_ASSERT(found > 0 && found < 1 - rho[i]);
            /* Only most / b counts. */
            CU_ASSERT(heads_near(found, sh_bound_dropped_cut(rho[i], k[j], 0.6, 100), 1e-12));
        }
    CU_ASSERT(heads_near(sh_bound_dropped_cut(0.2, 4, 1, 1e12), sh_bound_dropped(0.2, 4), 1e-9));
    CU_ASSERT(heads_near(sh_bound_dropped_cut(0, 1.5, 1, 20), 1, 1e-12));
    CU_ASSERT(fabs(sh_bound_dropped_cut(1, 1.5, 1, 20)) < 1e-12);
    CU_ASSERT(isnan(sh_bound_dropped_cut(0.5, 1, 1, 20)) && isnan(sh_bound_dropped_cut(0.5, 2, 0, 20)));
    CU_ASSERT(isnan(sh_bound_dropped_cut(0.5, 2, 1, INFINITY)) && isnan(sh_bound_dropped_cut(NAN, 2, 1, 2)));
}

static void where_the_theorem_ends(void)
{
    struct sh_bound at;
    for (double k = 1.2; k < 20; k *= 1.5) {
        double turn = pow((k - 1) / k, k - 1);          /* where inner is 0 */
        sh_bound_at(turn * 1.001, k, 0, &at);
        CU_ASSERT(at.informative && at.inner < 0.05);
        sh_bound_at(turn * 0.999, k, 0, &at);
        CU_ASSERT(!at.informative && at.inner < 0);
    }
    sh_bound_at(0.2, 3, 0.01, &at);
    CU_ASSERT(fabs(at.bound + 2.7) < 0.1 && !at.informative && !at.proven);
    sh_bound_at(0.1, 3, 0.1, &at);                      /* eps = rho */
    CU_ASSERT(isnan(at.inner) && isnan(at.bound) && !at.informative && isfinite(at.dropped));
    sh_bound_at(0.5, NAN, 0, &at);
    CU_ASSERT(isnan(at.inner) && isnan(at.bound) && isnan(at.dropped) && !at.informative);
    sh_bound_at(NAN, 3, 0, &at);
    CU_ASSERT(isnan(at.inner) && isnan(at.dropped) && !at.proven);
    sh_bound_at(1.2, 3, 0, &at);
    CU_ASSERT(isnan(at.inner) && isnan(at.dropped));
    CU_ASSERT(isnan(sh_bound_dropped(0.5, 2)) && isnan(sh_bound_dropped(-0.1, 3)));
}

static void probability_of_failure(void)
{
    double want = 200 * exp(-0.01 * 99 / 16) + 200 * exp(-2 * 99 * 0.01 / 0.81);
    CU_ASSERT(heads_near(sh_bound_failure(0.9, 3, 0.1, 1, 5, 100, 200), want, 1e-12));
    /* Vacuous where nothing is dropped; fails less often for longer sequences. */
    CU_ASSERT(sh_bound_failure(1, 3, 0.1, 1, 5, 100, 200) >= 200);
    CU_ASSERT(sh_bound_failure(0.5, 3, 0.5, 1, 5, 4000, 5000) < sh_bound_failure(0.5, 3, 0.5, 1, 5, 400, 5000));
    CU_ASSERT(isnan(sh_bound_failure(0.5, 2, 0.1, 1, 5, 100, 200)));
    CU_ASSERT(isnan(sh_bound_failure(0.5, 3, 0, 1, 5, 100, 200)));
    CU_ASSERT(isnan(sh_bound_failure(0.5, 3, 0.1, 5, 5, 100, 200)));
    CU_ASSERT(isnan(sh_bound_failure(0.5, 3, 0.1, 1, 5, 300, 200)));
}

/* ---- keeping the largest scores ---- */

static double at_of(const json_t *list, int q)
{
    return json_number_value(json_array_get(list, (size_t)q));
}

static void output_errors_of_the_fixtures(void)
{
    enum { N = 88, D = 8, N_CASE = 3 };
    size_t n;
    float *packed = heads_floats(THEORY "bound.attn.f32", &n), *v = heads_floats(THEORY "bound.v.f32", &n);
    const float *row = packed;
    json_t *root = heads_json(THEORY "metrics.json"), *cases = json_object_get(root, "output_error");
    struct sh_theory_scratch *scratch = sh_theory_scratch_new();
    int budget[N_CASE];
    CU_ASSERT_FATAL(json_array_size(cases) == N_CASE && n == N * D);
    for (int b = 0; b < N_CASE; b++)
        budget[b] = heads_int(json_array_get(cases, (size_t)b), "budget");
    for (int q = 0; q < N; row += ++q) {
        struct sh_theory_output out[N_CASE];
        sh_theory_output_row(scratch, row, q + 1, v, D, budget, N_CASE, out);
        for (int b = 0; b < N_CASE; b++) {
            const json_t *want = json_array_get(cases, (size_t)b);
            CU_ASSERT(fabs(out[b].error - at_of(json_object_get(want, "error"), q)) < 2e-7);
            CU_ASSERT(fabs(out[b].bound - at_of(json_object_get(want, "bound"), q)) < 2e-7);
            CU_ASSERT(fabs(out[b].kept - at_of(json_object_get(want, "recall"), q)) < 1e-7);
        }
    }
    sh_theory_scratch_free(scratch);
    json_decref(root);
    free(packed);
    free(v);
}

/* error <= bound on every row and budget, both falling to 0; equal scores keep the newer. */
static void output_errors_obey_their_bound(void)
{
    enum { N = 60, D = 5 };
    float row[N], v[N * D];
    int budget[N + 1];
    struct sh_theory_output out[N + 1];
    struct sh_theory_scratch *scratch = sh_theory_scratch_new();
    for (int i = 0; i <= N; i++)
        budget[i] = i + 1;
    for (uint64_t seed = 0; seed < 200; seed++) {
        for (int j = 0; j < N; j++)
            row[j] = (float)exp(3 * sh_rng_normal(seed, (uint64_t)j));
        for (int i = 0; i < N * D; i++)
            v[i] = (float)sh_rng_normal(seed + 1000, (uint64_t)i);
        sh_theory_output_row(scratch, row, N, v, D, budget, N + 1, out);
        for (int b = 0; b <= N; b++) {
            CU_ASSERT(out[b].error <= out[b].bound + 1e-12);
            CU_ASSERT(b == 0 || out[b].kept >= out[b - 1].kept);
        }
        CU_ASSERT(out[0].error > 0 && out[N - 2].kept < 1);
        CU_ASSERT(out[N - 1].kept == 1 && out[N - 1].error == 0 && out[N].bound == 0);
    }
    static const float equal[] = {0.25f, 0.25f, 0.25f, 0.25f}, mark[] = {1, 10, 100, 1000};
    sh_theory_output_row(scratch, equal, 4, mark, 1, budget, 2, out);
    CU_ASSERT(heads_near(out[0].error, 1000 - 1111 / 4.0, 1e-12));
    CU_ASSERT(heads_near(out[1].error, 550 - 1111 / 4.0, 1e-12) && out[1].kept == 0.5);
    sh_theory_scratch_free(scratch);
}

static void odd_rows(void)
{
    static const int budget[] = {1, 3};
    static const float nan_row[] = {0.5f, NAN}, negative[] = {1, -0.1f}, zero[] = {0, 0}, fine[] = {0.75f, 0.25f},
                       infinite[] = {INFINITY, 1}, minus[] = {-0.0f, 1}, v[] = {1, 2}, bad_v[] = {1, NAN};
    const float *const bad[] = {nan_row, negative, zero, infinite};
    struct sh_theory_scratch *scratch = sh_theory_scratch_new();
    struct sh_theory_output out[2];
    for (int i = 0; i < 4; i++) {
        sh_theory_output_row(scratch, bad[i], 2, v, 1, budget, 2, out);
        CU_ASSERT(isnan(out[0].kept) && isnan(out[1].kept) && isnan(out[0].error) && isnan(out[0].bound));
    }
    sh_theory_output_row(scratch, fine, 0, v, 1, budget, 2, out);
    CU_ASSERT(isnan(out[0].kept) && isnan(out[1].kept));
    sh_theory_output_row(scratch, fine, 2, NULL, 0, budget, 2, out);
    CU_ASSERT(out[0].kept == 0.75 && isnan(out[0].error) && out[1].kept == 1);
    sh_theory_output_row(scratch, fine, 2, bad_v, 1, budget, 2, out);
    CU_ASSERT(out[0].kept == 0.75 && isnan(out[0].error) && isnan(out[1].error));
    sh_theory_output_row(scratch, fine, 2, v, 1, budget, 2, out);
    CU_ASSERT(heads_near(out[0].error, 0.25, 1e-12) && heads_near(out[0].bound, 1, 1e-12));
    sh_theory_output_row(scratch, minus, 2, v, 1, budget, 2, out);
    CU_ASSERT(out[0].kept == 1 && out[0].error == 0);
    sh_theory_scratch_free(scratch);
}

/* Means over rows of measured and expected mass; rows of a Lomax law follow the law. */
static void dropped_mass_and_the_law(void)
{
    enum { N = 4000, ROWS = 40 };
    static const double rho[] = {0.1, 0.25, 0.5, 1};
    static const float four[] = {0.5f, 0.25f, 0.125f, 0.125f}, nan_row[] = {NAN}, v[] = {1, 1, 1, 2};
    float *row = xcalloc(N, sizeof *row);
    struct sh_dropped got;
    struct sh_theory_dropped *t = sh_theory_dropped_new(rho, 4);
    for (int q = 0; q < ROWS; q++) {
        for (int j = 0; j < N; j++)
            row[j] = (float)(pow(sh_rng_uniform(77, (uint64_t)(q * N + j)), -1.0 / 3) - 1);
        sh_theory_dropped_row(t, 10, q, N, row, NULL, 0);
    }
    for (int i = 0; i < 4; i++) {
        sh_theory_dropped_get(t, i, 4, 1, &got);
        CU_ASSERT(got.rows == ROWS - 10 && !got.left_out && !got.rows_with_v && isnan(got.error));
        CU_ASSERT(heads_near(got.budget, rho[i], 1e-12) && heads_near(got.law, sh_bound_dropped(rho[i], 4), 1e-9));
        CU_ASSERT(fabs(got.dropped - got.law) < 0.01);
        CU_ASSERT(heads_near(got.law_cut, sh_bound_dropped_cut(rho[i], 4, 1, N), 1e-9));
    }
    CU_ASSERT(fabs(got.dropped) < 1e-12);
    sh_theory_dropped_get(t, 0, NAN, 1, &got);
    CU_ASSERT(isnan(got.law) && isnan(got.law_cut) && isfinite(got.dropped));
    sh_theory_dropped_free(t);

    t = sh_theory_dropped_new(rho, 4);
    sh_theory_dropped_get(t, 0, 4, 1, &got);
    CU_ASSERT(isnan(got.dropped) && isnan(got.budget) && isnan(got.law) && got.rows == 0);
    sh_theory_dropped_row(t, 0, 3, 4, four, v, 1);      /* B = 1, 1, 2, 4 */
    sh_theory_dropped_row(t, 0, 4, 1, nan_row, NULL, 0);
    sh_theory_dropped_row(t, 0, 0, 0, four, NULL, 0);
    sh_theory_dropped_get(t, 0, 4, 1, &got);
    CU_ASSERT(got.rows == 1 && got.left_out == 1 && got.rows_with_v == 1);
    CU_ASSERT(got.budget == 0.25 && got.dropped == 0.5 && heads_near(got.error, 0.125, 1e-12) && got.bound == 2);
    sh_theory_dropped_get(t, 2, 4, 1, &got);
    CU_ASSERT(got.budget == 0.5 && got.dropped == 0.25);
    sh_theory_dropped_free(t);
    free(row);
    CU_ASSERT_PTR_NULL(sh_theory_dropped_new(rho, 0));
    CU_ASSERT_PTR_NULL(sh_theory_dropped_new((const double[]){0.5, 0.5}, 2));
    CU_ASSERT_PTR_NULL(sh_theory_dropped_new((const double[]){0, 0.5}, 2));
    CU_ASSERT_PTR_NULL(sh_theory_dropped_new((const double[]){NAN}, 1));
}

/* ---- samples of bounded size ---- */

/* The values 1..n_row * n in this order, in rows of n; with `gaps` in twice as many rows of n, each
 * half empty, which is the same sample by another way through the code. */
static struct sh_theory_sample *numbers(size_t cap, uint64_t seed, int n_row, int n, int gaps)
{
    struct sh_theory_sample *s = sh_theory_sample_new(cap, seed);
    float *row = xcalloc((size_t)n, sizeof *row);
    int filled = gaps ? n / 2 : n;
    for (int q = 0; q < n_row * n / filled; q++) {
        for (int j = 0; j < filled; j++)
            row[gaps ? 2 * j : j] = (float)(q * filled + j + 1) / (float)n;
        sh_theory_sample_row(s, 0, q, n, row);
    }
    free(row);
    return s;
}

static void samples_are_even_and_repeat(void)
{
    enum { CAP = 1000, ROWS = 256, N = 128 };          /* 32768 values 1..32768 */
    double mean_of_means = 0;
    size_t n, again;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct sh_theory_sample *s = numbers(CAP, seed, ROWS, N, 0),
                                *twin = numbers(CAP, seed, ROWS, N, 1);
        const double *x = sh_theory_sample_values(s, &n), *y = sh_theory_sample_values(twin, &again);
        struct sh_theory_seen seen;
        int part[8] = {0};
        double mean = 0;
        CU_ASSERT_FATAL(n == CAP && again == CAP);
        CU_ASSERT(memcmp(x, y, n * sizeof *x) == 0);
        for (size_t i = 0; i < n; i++) {
            CU_ASSERT_FATAL(x[i] >= 1 && x[i] <= ROWS * N);
            mean += x[i] / CAP;
            part[(int)((x[i] - 1) * 8 / (ROWS * N))]++;
        }
        for (int i = 0; i < 8; i++)                     /* 125 each, deviation 10 */
            CU_ASSERT(part[i] > 75 && part[i] < 175);
        mean_of_means += mean / 20;
        sh_theory_sample_seen(s, &seen);
        CU_ASSERT(seen.rows == ROWS && seen.values == ROWS * N && seen.left_out == 0);
        struct sh_theory_seen gaps;
        sh_theory_sample_seen(twin, &gaps);
        CU_ASSERT(gaps.rows == 2 * ROWS && gaps.values == ROWS * N && gaps.left_out == ROWS * N);
        CU_ASSERT(gaps.largest == seen.largest && gaps.share == seen.share);
        CU_ASSERT(seen.largest == ROWS * N && heads_near(seen.share, CAP / (double)(ROWS * N), 1e-12));
        sh_theory_sample_free(s);
        sh_theory_sample_free(twin);
    }
    /* Deviation of one mean is 0.289 * 32768 / sqrt(1000) = 299, of their mean 67. */
    CU_ASSERT(fabs(mean_of_means - 16384.5) < 4 * 67);
}

static void samples_leave_out(void)
{
    static const float row[] = {0, 0.5f, NAN, -0.25f, INFINITY, 0.125f};
    struct sh_theory_sample *s = sh_theory_sample_new(10, 1);
    struct sh_theory_seen seen;
    size_t n;
    sh_theory_sample_seen(s, &seen);
    CU_ASSERT(isnan(seen.share) && isnan(seen.largest) && seen.rows == 0);
    sh_theory_sample_row(s, 4, 3, 6, row);
    sh_theory_sample_values(s, &n);
    CU_ASSERT(n == 0);
    sh_theory_sample_row(s, 4, 4, 6, row);
    sh_theory_sample_row(s, 4, 5, 0, row);
    const double *x = sh_theory_sample_values(s, &n);
    CU_ASSERT_FATAL(n == 2);
    CU_ASSERT(x[0] == 3 && x[1] == 0.75);
    sh_theory_sample_seen(s, &seen);
    CU_ASSERT(seen.rows == 1 && seen.values == 2 && seen.left_out == 4 && seen.largest == 3 && seen.share == 1);
    sh_theory_sample_free(s);
    sh_theory_sample_free(NULL);
}

/* ---- Theorem 3.1 ---- */

static void check_theorem(const json_t *want)
{
    size_t n_float, n = (size_t)heads_int(want, "n"), d = (size_t)heads_int(want, "d_head"),
                    m = (size_t)heads_int(want, "d_model");
    char *name = xasprintf(THEORY "%s", json_string_value(json_object_get(want, "file")));
    float *x = heads_floats(name, &n_float);
    double *cosine = xcalloc(n, sizeof *cosine);
    const float *rows = x + 3 * n * d, *wq = rows + n * (n + 1) / 2, *wk = wq + m * d, *wv = wk + m * d,
                *wo = wv + m * d;
    struct sh_repeat_weights w;
    struct sh_repeat_head h = {(int)n, x, x + n * d, x + 2 * n * d, rows, cosine};
    struct sh_repeat got;
    struct sh_err e;
    CU_ASSERT_FATAL(wo + m * d == x + n_float);
    for (size_t t = 0; t + 1 < n; t++)
        cosine[t] = at_of(json_object_get(want, "cosine"), (int)t);
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, wq, wk, wv, wo, (int)m, (int)d, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, heads_real(want, "lambda"), 1e-6));
    CU_ASSERT_FATAL(sh_repeat_check(&w, &h, &got, &e) == 0);
    CU_ASSERT(got.pairs == (uint64_t)heads_int(want, "pairs"));
    CU_ASSERT(got.positive == (uint64_t)heads_int(want, "positive"));
    CU_ASSERT(got.informative == (uint64_t)heads_int(want, "informative"));
    CU_ASSERT(got.above_zero == (uint64_t)heads_int(want, "above_zero"));
    CU_ASSERT(got.violations == 0);
    CU_ASSERT(heads_near(got.least_eps, heads_real(want, "least_eps"), 1e-3));
    CU_ASSERT(heads_near(got.mean_eps, heads_real(want, "mean_eps"), 1e-4));
    CU_ASSERT(heads_near(got.step, heads_real(want, "step"), 1e-3));
    CU_ASSERT(heads_near(got.lemma, heads_real(want, "lemma"), 1e-2) && got.lemma <= 1 + 1e-2);
    sh_repeat_weights_clear(&w);
    free(name);
    free(cosine);
    free(x);
}

static void theorem_in_the_papers_model(void)
{
    size_t i;
    json_t *root = heads_json(THEORY "cases.json"), *want;
    CU_ASSERT(json_array_size(json_object_get(root, "theorem")) == 2);
    json_array_foreach(json_object_get(root, "theorem"), i, want)
        check_theorem(want);
    json_decref(root);
}

/* Products of largest singular values, also where several are equal or all are 0. */
static void largest_singular_values(void)
{
    static const float halves[16] = {[0] = 0.5f, [5] = 0.5f, [10] = 0.5f, [15] = 0.5f};
    static const float half[] = {0.70710678f, 0, 0, 0.70710678f}, zero[4] = {0}, shear[] = {1, 1, 0, 1},
                       tall[] = {3, 4, 0};
    struct sh_repeat_weights w;
    struct sh_err e;
    double golden = (1 + sqrt(5)) / 2;                  /* of the shear */
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, halves, halves, halves, halves, 4, 4, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, 1.0 / 16, 1e-9));    /* a trace of exactly 1 */
    sh_repeat_weights_clear(&w);
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, half, half, half, half, 2, 2, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, 0.25, 1e-6));
    sh_repeat_weights_clear(&w);
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, shear, half, shear, half, 2, 2, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, golden * golden / 2, 1e-6));
    CU_ASSERT(heads_near(w.wo_wq[1], sqrt(0.5), 1e-6) && fabs(w.wo_wq[2]) < 1e-12);
    sh_repeat_weights_clear(&w);
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, tall, tall, tall, tall, 3, 1, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, 625, 1e-12) && heads_near(w.wo_wq[0], 25, 1e-12));
    sh_repeat_weights_clear(&w);
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, zero, half, half, half, 2, 2, &e) == 0);
    CU_ASSERT(w.lambda == 0);
    sh_repeat_weights_clear(&w);
}

/* A next token that has nothing to do with what attention made breaks the premise, and without its
 * cosines the check must say so. One dimension: q = k = v = x, all matrices 1. */
static void broken_premise_is_seen(void)
{
    static const float one = 1, x[] = {1, -1}, rows[] = {1, 0.5f, 0.5f}, nan_rows[] = {1, NAN, 0.5f};
    static const double opposite = -1, bad = NAN;
    struct sh_repeat_weights w;
    struct sh_repeat_head h = {2, x, x, x, rows, NULL};
    struct sh_repeat got;
    struct sh_err e;
    CU_ASSERT_FATAL(sh_repeat_weights_set(&w, &one, &one, &one, &one, 1, 1, &e) == 0);
    CU_ASSERT(heads_near(w.lambda, 1, 1e-12));
    CU_ASSERT(sh_repeat_check(&w, &h, &got, &e) == 0);
    CU_ASSERT(got.pairs == 1 && got.positive == 1 && got.violations == 1 && got.informative == 1);
    CU_ASSERT(heads_near(got.step, 2, 1e-12));
    h.cosine = &opposite;                               /* delta 2: eps sqrt(2), nothing is promised */
    CU_ASSERT(sh_repeat_check(&w, &h, &got, &e) == 0);
    CU_ASSERT(got.violations == 0 && got.informative == 0 && heads_near(got.mean_eps, sqrt(2), 1e-12));
    h.cosine = &bad;
    CU_ASSERT(sh_repeat_check(&w, &h, &got, &e) == -1 && strstr(e.text, "cosine"));
    h.cosine = NULL;
    h.attention = nan_rows;
    CU_ASSERT(sh_repeat_check(&w, &h, &got, &e) == -1 && strstr(e.text, "not finite"));
    h.n = 1;
    CU_ASSERT(sh_repeat_check(&w, &h, &got, &e) == -1 && strstr(e.text, "1 tokens"));
    sh_repeat_weights_clear(&w);
    CU_ASSERT(sh_repeat_weights_set(&w, &one, &one, &one, nan_rows + 1, 1, 1, &e) == -1);
    CU_ASSERT(sh_repeat_weights_set(&w, &one, &one, &one, &one, 0, 1, &e) == -1);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"the printed bound and the dropped-mass law equal the fixtures", table_of_bounds},
        {"the dropped-mass law falls from 1 to 0 and holds for samples", dropped_mass_law},
        {"the dropped-mass law of a density with an end", dropped_mass_of_a_cut_law},
        {"where the printed bound ends", where_the_theorem_ends},
        {"the probability that the theorem fails", probability_of_failure},
        {"output errors equal the fixtures", output_errors_of_the_fixtures},
        {"output errors obey their bound", output_errors_obey_their_bound},
        {"rows that are no distribution", odd_rows},
        {"measured dropped mass next to the law", dropped_mass_and_the_law},
        {"bounded samples are even and repeat", samples_are_even_and_repeat},
        {"what samples leave out", samples_leave_out},
        {"Theorem 3.1 in the paper's model", theorem_in_the_papers_model},
        {"largest singular values", largest_singular_values},
        {"Theorem 3.1 with a broken premise", broken_premise_is_seen},
        {NULL, NULL},
    };
    return tap_run("theory", tests);
}
