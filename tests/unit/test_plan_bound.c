/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a mean over sequences: those of an independent implementation (tests/oracle/plan_bounds.py), and what holds
 * for all of them. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/app/plan/judged_count.h"
#include "src/app/plan/layer_losses.h"
#include "src/app/plan/plan_bound.h"
#include "src/base/mem.h"
#include "tests/tap.h"

static double *numbers(const json_t *o, const char *key, int *n)
{
    const json_t *all = json_object_get(o, key);
    *n = (int)json_array_size(all);
    double *x = xcalloc((size_t)*n + 1, sizeof *x);
    for (int i = 0; i < *n; i++)
        x[i] = json_number_value(json_array_get(all, (size_t)i));
    return x;
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void golden(void)
{
    json_error_t error;
    const char *path = tap_golden("plan_bounds.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_t *root = json_load_file(path, 0, &error), *cases = json_object_get(root, "cases"), *c;
    size_t i;
    CU_ASSERT_FATAL(json_array_size(cases) >= 50);
    json_array_foreach(cases, i, c) {
        int n;
        double *x = numbers(c, "x", &n), *w = numbers(c, "w", &n), confidence = number(c, "confidence");
        int is_share = json_is_true(json_object_get(c, "is_share"));
        struct sh_mean_bound b = (is_share ? sh_mean_bound_of_share : sh_mean_bound_of)(x, w, n, confidence);
        CU_ASSERT_EQUAL(b.n, (int)number(c, "n"));
        CU_ASSERT_DOUBLE_EQUAL(b.mean, number(c, "mean"), 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(b.error, number(c, "error"), 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(b.low, number(c, "low"), 1e-5 * (1 + fabs(b.low)));
        CU_ASSERT_DOUBLE_EQUAL(b.high, number(c, "high"), 1e-5 * (1 + fabs(b.high)));
        free(x);
        free(w);
    }
    json_decref(root);
}

static void few(void)
{
    const double x[] = {0.3, 5, 0.1}, w[] = {10, 0, 10}, all[] = {4, 3, 5};
    struct sh_mean_bound none = sh_mean_bound_of(x, w + 1, 1, 0.95), one = sh_mean_bound_of(x, w, 2, 0.95);
    CU_ASSERT(none.n == 0 && isnan(none.mean) && isnan(none.high));
    CU_ASSERT(one.n == 1 && one.mean == 0.03 && isnan(one.error) && isnan(one.high));
    CU_ASSERT_EQUAL(sh_mean_bound_of(x, w, 3, 0.95).n, 2);           /* without tokens a sequence does not count */
    struct sh_mean_bound right = sh_mean_bound_of_share(all, all, 3, 0.95);
    CU_ASSERT(right.mean == 1 && right.high == 1 && right.low < 0.9 && right.low > 0.7);
}

/* So many sequences like these would do, and one less would not. */
static void needed(void)
{
    double x[400], w[400];
    for (int i = 0; i < 400; i++) {
        x[i] = i % 2 ? 4 : 8;
        w[i] = 1;
    }
    struct sh_mean_bound b = sh_mean_bound_of(x, w, 12, 0.95);
    int n = sh_mean_bound_needs(&b, 6.5, 0.95);
    CU_ASSERT(b.high > 6.5 && n > 12 && n < 100);
    CU_ASSERT(sh_mean_bound_of(x, w, n + n % 2 + 4, 0.95).high <= 6.5);
    CU_ASSERT(sh_mean_bound_of(x, w, n - n % 2 - 4, 0.95).high > 6.5);
    CU_ASSERT_EQUAL(sh_mean_bound_needs(&b, 6, 0.95), 0);
    CU_ASSERT_EQUAL(sh_mean_bound_needs(&b, 5, 0.95), 0);
}

static void counted(void)
{
    json_error_t error;
    const char *path = tap_golden("plan_bounds.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_t *root = json_load_file(path, 0, &error), *counts = json_object_get(root, "counts"), *c, *at;
    size_t i, k;
    int more = 0;
    CU_ASSERT_FATAL(json_array_size(counts) >= 20);
    json_array_foreach(counts, i, c) {
        struct sh_seen_budget seen[16];
        int n = 0, least = (int)number(c, "least"), most = (int)number(c, "most");
        json_array_foreach(json_object_get(c, "seen"), k, at)
            seen[n++] = (struct sh_seen_budget){(int)json_number_value(json_array_get(at, 0)),
                                                json_number_value(json_array_get(at, 1)),
                                                json_number_value(json_array_get(at, 2))};
        int found = sh_judged_count(seen, n, number(c, "target"), number(c, "confidence"), least, most);
        CU_ASSERT_EQUAL(found, (int)number(c, "count"));
        more += found > least && found < most;
    }
    CU_ASSERT(more >= 3);
    CU_ASSERT_EQUAL(sh_judged_count(NULL, 0, 0.01, 0.95, 24, 96), 24);
    json_decref(root);
}

/* Of three layers at two budgets, many tokens: the usual ratio; one that evictions help; one of no loss. */
static void aimed(void)
{
    const double kl[6] = {0.3, 0.1, 0.3, 0.1, 0, 0}, change[6] = {0.33, 0.11, -0.2, -0.01, 0, 0};
    double loss[6], few[6], alike[6];
    for (int i = 0; i < 6; i++)
        loss[i] = few[i] = alike[i] = kl[i];
    sh_layer_losses_aim(loss, change, 3, 2, 1e6);
    double prior = 2 * 2 / (1e6 * 0.0625), ratio = (0.44 + 0.5 * prior) / (0.4 + prior);    /* usual: 0.23 / 0.8, at */
    CU_ASSERT_DOUBLE_EQUAL(loss[0], 0.3 * ratio, 1e-12);                                    /* least 0.5              */
    CU_ASSERT_DOUBLE_EQUAL(loss[1], 0.1 * ratio, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(loss[2], 0.03, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(loss[3], 0.01, 1e-12);
    CU_ASSERT(loss[4] == 0 && loss[5] == 0);
    sh_layer_losses_aim(few, change, 3, 2, 1);                  /* of one token nothing is known but the usual ratio */
    CU_ASSERT(fabs(few[0] / 0.3 - 0.5) < 0.01 && fabs(few[2] / 0.3 - 0.5) < 0.01);
    sh_layer_losses_aim(alike, kl, 3, 2, 500);
    for (int i = 0; i < 6; i++)
        CU_ASSERT_DOUBLE_EQUAL(alike[i], kl[i], 1e-12);
}

/* Straight in the logarithm: with budgets that double, a step is the same everywhere. */
static void filled(void)
{
    const int point[5] = {4, 8, 16, 32, 64};
    double loss[10] = {NAN, 0.5, NAN, 0.1, NAN, NAN, NAN, NAN, NAN, 0.2}, tokens[3];
    sh_layer_losses_fill(loss, point, 2, 5, 256);
    static const double expected[10] = {2, 0.5, 0.3, 0.1, 0.1 * 2 / 3, 51.2, 12.8, 3.2, 0.8, 0.2};
    for (int i = 0; i < 10; i++)
        CU_ASSERT_DOUBLE_EQUAL(loss[i], expected[i], 1e-12);
    tokens[0] = sh_loss_at(loss, point, 5, 256, 8);
    tokens[1] = sh_loss_at(loss, point, 5, 256, 8 * sqrt(2));
    tokens[2] = sh_loss_at(loss, point, 5, 256, 128);
    CU_ASSERT_DOUBLE_EQUAL(tokens[0], 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(tokens[1], 0.4, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(tokens[2], 0.1 / 3, 1e-12);
    CU_ASSERT(sh_loss_at(loss, point, 5, 256, 256) == 0 && sh_loss_at(loss, point, 5, 256, 4) == 2);
}

static void wanted(void)
{
    const int point[6] = {1, 4, 8, 16, 32, 64};
    const double some[6] = {NAN, NAN, NAN, 0.3, NAN, 0.1}, all[6] = {5, 4, 3, 2, 1, 0},
        low[6] = {2, 1, NAN, NAN, NAN, NAN}, none[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
    int to[6];
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 20, 30, to) == 2 && to[0] == 2 && to[1] == 4);
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 16, 16, to) == 1 && to[0] == 2);
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 5, 16, to) == 1 && to[0] == 2);         /* then 4, then 1 */
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 40, 50, to) == 1 && to[0] == 4);
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 70, 90, to) == 1 && to[0] == 4);
    CU_ASSERT(sh_layer_losses_wanted(some, point, 6, 1, 1, to) == 1 && to[0] == 2);          /* towards it */
    CU_ASSERT(sh_layer_losses_wanted(low, point, 6, 60, 60, to) == 1 && to[0] == 2);
    CU_ASSERT(sh_layer_losses_wanted(none, point, 6, 1, 64, to) == 0);
    CU_ASSERT(sh_layer_losses_wanted(all, point, 6, 1, 64, to) == 0);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"bounds are those of an independent implementation", golden},
        {"few sequences, and shares that are all right", few},
        {"how many sequences a bound needs", needed},
        {"how many sequences to judge on", counted},
        {"layers by what they raise the perplexity by", aimed},
        {"losses that were not measured", filled},
        {"which losses to measure", wanted},
        {0}};
    return tap_run("plan_bound", tests);
}
