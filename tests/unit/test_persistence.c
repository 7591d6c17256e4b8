/* SPDX-License-Identifier: Apache-2.0 */
/* Persistence figures against the shared fixtures (five model families) and against figures
 * computed set by set by tests/oracle/persistence.py: ties, windows, all quantities, means over
 * many heads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/persistence.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/heads.h"

/* ---- the shared fixtures ---- */

static const struct {
    const char *key;
    struct sh_alpha alpha;
    int recent;
} fixture_cell[] = {
    {"alpha_row", {SH_ALPHA_ROW, 1}, 0},
    {"alpha_row_no_self", {SH_ALPHA_ROW, 1}, 1},
    {"alpha_split", {SH_ALPHA_SPLIT, 0}, 0},
    {"alpha_split_no_self", {SH_ALPHA_SPLIT, 0}, 1},
    {"alpha_0.05", {SH_ALPHA_VALUE, 0.05}, 0},
};
#define N_FIXTURE_CELL ((int)(sizeof fixture_cell / sizeof *fixture_cell))

static struct sh_persistence_cell cell_of(int i)
{
    return (struct sh_persistence_cell){fixture_cell[i].alpha, fixture_cell[i].recent, 0.5};
}

static struct sh_stats_spec fixture_spec(void)
{
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    spec.n_alpha = 3;
    for (int i = 0; i < 3; i++)
        spec.alpha[i] = fixture_cell[2 * i].alpha;
    return spec;
}

static void check_fixture_head(const json_t *head, const struct sh_stats *s)
{
    double figure[SH_N_FIGURE];
    struct sh_err e;
    for (int i = 0; i < N_FIXTURE_CELL; i++) {
        struct sh_persistence_cell cell = cell_of(i);
        const json_t *want = json_object_get(head, fixture_cell[i].key);
        CU_ASSERT_FATAL(sh_persistence_head(s, &cell, figure, &e) == 0);
        CU_ASSERT(heads_near(figure[SH_RATIO], heads_real(want, "persistence_ratio"), 1e-12));
        CU_ASSERT(heads_near(figure[SH_DENSITY], heads_real(want, "pivotal_fraction"), 1e-12));
    }
    CU_ASSERT(heads_near(figure[SH_BELOW_MEAN], heads_real(head, "sparsity_below_mean"), 1e-12));
    CU_ASSERT(
        heads_near(figure[SH_BELOW_1PCT], heads_real(head, "sparsity_below_1pct_of_max"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_ENTROPY], heads_real(head, "mean_entropy_nats"), 2e-7));
    CU_ASSERT(heads_near(figure[SH_NORMALISED_ENTROPY], heads_real(head, "mean_normalised_entropy"),
                         2e-7));
    CU_ASSERT(heads_near(figure[SH_MASS_TOP], heads_real(head, "mean_mass_top20pct"), 1e-12));
}

static void check_fixture_layers(const json_t *source, const struct sh_persistence *p)
{
    size_t i;
    json_t *want;
    CU_ASSERT_FATAL(sh_persistence_n_layer(p) ==
                    (int)json_array_size(json_object_get(source, "per_layer")));
    json_array_foreach(json_object_get(source, "per_layer"), i, want) {
        const double *self = sh_persistence_figures(p, 0, (int)i, -1),
                     *no_self = sh_persistence_figures(p, 1, (int)i, -1);
        CU_ASSERT(sh_persistence_layer_at(p, (int)i) == heads_int(want, "layer"));
        CU_ASSERT(heads_near(self[SH_RATIO], heads_real(want, "mean_persistence_ratio"), 1e-12));
        CU_ASSERT(heads_near(self[SH_DENSITY], heads_real(want, "mean_pivotal_fraction"), 1e-12));
        CU_ASSERT(heads_near(no_self[SH_RATIO], heads_real(want, "mean_persistence_ratio_no_self"),
                             1e-12));
        CU_ASSERT(heads_near(no_self[SH_DENSITY], heads_real(want, "mean_pivotal_fraction_no_self"),
                             1e-12));
    }
}

static void check_source(const json_t *source)
{
    struct sh_stats_spec spec = fixture_spec();
    struct sh_persistence_cell cell[N_FIXTURE_CELL];
    struct sh_err e;
    size_t n, i;
    json_t *head;
    for (int k = 0; k < N_FIXTURE_CELL; k++)
        cell[k] = cell_of(k);
    struct sh_persistence *p = sh_persistence_new(cell, N_FIXTURE_CELL);
    float *x = heads_floats(json_string_value(json_object_get(source, "file")), &n);
    const float *at = x;
    json_array_foreach(json_object_get(source, "heads"), i, head) {
        int layer = heads_int(head, "layer");
        json_t *window = json_array_get(json_object_get(source, "windows"), (size_t)layer);
        struct sh_stats *s = sh_stats_new(&spec, heads_int(source, "T"));
        at = heads_feed(s, at, (int)json_integer_value(window));
        check_fixture_head(head, s);
        CU_ASSERT(sh_persistence_add(p, 0, layer, heads_int(head, "head"), s, &e) == 0);
        sh_stats_free(s);
    }
    CU_ASSERT(at == x + n);
    CU_ASSERT(sh_persistence_finish(p, &e) == 0);
    check_fixture_layers(source, p);
    sh_persistence_free(p);
    free(x);
}

static void fixtures_of_five_families(void)
{
    size_t i;
    json_t *root = heads_json("metrics.json"), *source;
    CU_ASSERT(json_array_size(root) == 5);
    json_array_foreach(root, i, source)
        check_source(source);
    json_decref(root);
}

/* ---- the oracle's cases ---- */

static struct sh_persistence_cell read_cell(const json_t *object)
{
    struct sh_persistence_cell cell = {.recent = heads_int(object, "recent"),
                                       .split = heads_real(object, "split")};
    struct sh_err e;
    CU_ASSERT_FATAL(
        sh_alpha_parse(json_string_value(json_object_get(object, "alpha")), &cell.alpha, &e) == 0);
    return cell;
}

static void check_table(const double *figure, const json_t *want)
{
    CU_ASSERT(heads_near(figure[SH_RATIO], heads_real(want, "ratio"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_DENSITY], heads_real(want, "density"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_CHANCE], heads_real(want, "density"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_LIFT], heads_real(want, "lift"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_RELATIVE_RISK], heads_real(want, "relative_risk"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_PHI], heads_real(want, "phi"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_AUC], heads_real(want, "auc"), 1e-12));
}

static void check_rows(const double *figure, const json_t *want)
{
    CU_ASSERT(heads_near(figure[SH_ENTROPY], heads_real(want, "entropy"), 2e-7));
    CU_ASSERT(
        heads_near(figure[SH_NORMALISED_ENTROPY], heads_real(want, "normalised_entropy"), 2e-7));
    CU_ASSERT(heads_near(figure[SH_MASS_TOP], heads_real(want, "mass_top"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_BELOW_MEAN], heads_real(want, "below_mean"), 1e-12));
    CU_ASSERT(heads_near(figure[SH_BELOW_1PCT], heads_real(want, "below_1pct"), 1e-12));
}

static void check_jaccards(const double *figure, const json_t *want)
{
    for (size_t i = 0; i < SH_STATS_LAGS; i++) {
        json_t *found = json_array_get(json_object_get(want, "jaccard"), i);
        json_t *chance = json_array_get(json_object_get(want, "jaccard_chance"), i);
        CU_ASSERT(heads_near(figure[SH_JACCARD + i],
                             json_is_null(found) ? NAN : json_number_value(found), 1e-12));
        CU_ASSERT(heads_near(figure[SH_JACCARD_CHANCE + i],
                             json_is_null(chance) ? NAN : json_number_value(chance), 1e-12));
    }
}

static struct sh_stats *feed_case(const json_t *c)
{
    size_t n;
    struct sh_stats_spec spec = heads_spec(c);
    float *x = heads_floats(json_string_value(json_object_get(c, "file")), &n);
    struct sh_stats *s = sh_stats_new(&spec, heads_int(c, "T"));
    CU_ASSERT(heads_feed(s, x, heads_int(c, "context")) == x + n);
    free(x);
    return s;
}

static void cases_of_the_oracle(void)
{
    size_t i, k;
    json_t *root = heads_json("cases.json"), *c, *want;
    double figure[SH_N_FIGURE];
    struct sh_err e;
    json_array_foreach(root, i, c) {
        struct sh_stats *s = feed_case(c);
        json_array_foreach(json_object_get(c, "cells"), k, want) {
            struct sh_persistence_cell cell = read_cell(want);
            CU_ASSERT_FATAL(sh_persistence_head(s, &cell, figure, &e) == 0);
            check_table(figure, want);
            check_rows(figure, json_object_get(c, "rows"));
        }
        json_array_foreach(json_object_get(c, "jaccards"), k, want) {
            struct sh_persistence_cell cell = read_cell(want);
            CU_ASSERT_FATAL(sh_persistence_head(s, &cell, figure, &e) == 0);
            check_jaccards(figure, want);
        }
        sh_stats_free(s);
    }
    json_decref(root);
}

/* ---- means ---- */

static struct sh_persistence *add_group(const json_t *root, int backwards)
{
    struct sh_stats_spec spec = heads_spec(root);
    struct sh_persistence_cell cell[2];
    json_t *heads = json_object_get(root, "heads");
    size_t n, n_head = json_array_size(heads);
    struct sh_stats **s = xcalloc(n_head, sizeof *s);
    struct sh_err e;
    float *x = heads_floats("group.f32", &n);
    const float *at = x;
    for (size_t i = 0; i < n_head; i++) {
        s[i] = sh_stats_new(&spec, heads_int(json_array_get(heads, i), "T"));
        at = heads_feed(s[i], at, 0);
    }
    for (size_t i = 0; i < 2; i++)
        cell[i] = read_cell(json_array_get(json_object_get(root, "cells"), i));
    struct sh_persistence *p = sh_persistence_new(cell, 2);
    for (size_t i = 0; i < n_head; i++) {
        size_t k = backwards ? n_head - 1 - i : i;
        json_t *h = json_array_get(heads, k);
        CU_ASSERT(sh_persistence_add(p, heads_int(h, "sequence"), heads_int(h, "layer"),
                                     heads_int(h, "head"), s[k], &e) == 0);
    }
    for (size_t i = 0; i < n_head; i++)
        sh_stats_free(s[i]);
    free(s);
    free(x);
    return p;
}

static void check_means(const double *figure, const json_t *want)
{
    static const struct { const char *key; int figure; } name[] = {
        {"ratio", SH_RATIO}, {"density", SH_DENSITY}, {"lift", SH_LIFT},
        {"relative_risk", SH_RELATIVE_RISK}, {"phi", SH_PHI}, {"auc", SH_AUC}};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        CU_ASSERT(heads_near(figure[name[i].figure], heads_real(want, name[i].key), 1e-12));
}

static void means_over_sequences_heads_and_layers(void)
{
    struct sh_err e;
    json_t *root = heads_json("group.json"), *want;
    struct sh_persistence *p = add_group(root, 0);
    CU_ASSERT_FATAL(sh_persistence_finish(p, &e) == 0);
    CU_ASSERT_FATAL(sh_persistence_n_layer(p) == 2 && sh_persistence_n_head(p, 1) == 3);
    CU_ASSERT(sh_persistence_layer_at(p, 1) == 4 && sh_persistence_head_at(p, 1, 2) == 2);
    for (int c = 0; c < 2; c++) {
        json_t *cell = json_array_get(json_object_get(root, "cells"), (size_t)c);
        size_t i;
        json_array_foreach(json_object_get(cell, "heads"), i, want)
            check_means(sh_persistence_figures(p, c, (int)i / 3, (int)i % 3), want);
        json_array_foreach(json_object_get(cell, "layers"), i, want) {
            check_means(sh_persistence_figures(p, c, (int)i, -1), want);
            CU_ASSERT(sh_persistence_min_head(p, c, (int)i) == heads_int(want, "min_head"));
        }
        check_means(sh_persistence_figures(p, c, -1, -1), json_object_get(cell, "all"));
    }
    sh_persistence_free(p);
    json_decref(root);
}

static void order_of_adding_does_not_matter(void)
{
    struct sh_err e;
    json_t *root = heads_json("group.json");
    struct sh_persistence *a = add_group(root, 0), *b = add_group(root, 1);
    CU_ASSERT_FATAL(sh_persistence_finish(a, &e) == 0 && sh_persistence_finish(b, &e) == 0);
    size_t bytes = SH_N_FIGURE * sizeof(double);
    for (int c = 0; c < 2; c++) {
        CU_ASSERT(!memcmp(sh_persistence_figures(a, c, -1, -1), sh_persistence_figures(b, c, -1, -1), bytes));
        CU_ASSERT(
            !memcmp(sh_persistence_figures(a, c, 1, -1), sh_persistence_figures(b, c, 1, -1), bytes));
        CU_ASSERT(
            !memcmp(sh_persistence_figures(a, c, 0, 2), sh_persistence_figures(b, c, 0, 2), bytes));
    }
    sh_persistence_free(a);
    sh_persistence_free(b);
    json_decref(root);
}

/* ---- what cannot be answered ---- */

static const float tiny[] = {1, .5f, .5f, .2f, .3f, .5f, .7f, .1f, .1f, .1f};     /* 4 rows */

static void missing_cells_are_named(void)
{
    struct sh_stats_spec spec;
    struct sh_err e;
    double figure[SH_N_FIGURE];
    sh_stats_spec_default(&spec);
    struct sh_stats *s = sh_stats_new(&spec, 4);
    heads_feed(s, tiny, 0);
    struct sh_persistence_cell no_alpha = {{SH_ALPHA_ROW, 3}, 0, 0.5},
                               no_recent = {{SH_ALPHA_ROW, 1}, 2, 0.5},
                               no_split = {{SH_ALPHA_SPLIT, 0}, 0, 0.4},
                               any = {{SH_ALPHA_ROW, 1}, 0, 0.4};
    CU_ASSERT(sh_persistence_head(s, &no_alpha, figure, &e) == -1 && strstr(e.text, "3/t") != NULL);
    CU_ASSERT(sh_persistence_head(s, &no_recent, figure, &e) == -1 &&
              strstr(e.text, "recent 2") != NULL);
    CU_ASSERT(sh_persistence_head(s, &no_split, figure, &e) == -1 &&
              strstr(e.text, "split 0.4") != NULL);
    CU_ASSERT(sh_persistence_head(s, &any, figure, &e) == 0); /* t = 1: never pivotal before */
    CU_ASSERT(figure[SH_RATIO] == 0 && figure[SH_DENSITY] == 0 && isnan(figure[SH_LIFT]));
    CU_ASSERT(isnan(figure[SH_AUC]));
    struct sh_persistence *p = sh_persistence_new(&any, 1);
    CU_ASSERT(sh_persistence_add(p, 0, 0, 0, s, &e) == 0 &&
              sh_persistence_add(p, 0, 0, 0, s, &e) == 0);
    CU_ASSERT(sh_persistence_finish(p, &e) == -1 && strstr(e.text, "twice") != NULL);
    sh_persistence_free(p);
    p = sh_persistence_new(&no_alpha, 1);
    CU_ASSERT(sh_persistence_add(p, 0, 5, 0, s, &e) == -1 && strstr(e.text, "layer 5") != NULL);
    CU_ASSERT(sh_persistence_finish(p, &e) == 0 && sh_persistence_n_layer(p) == 0);
    CU_ASSERT(isnan(sh_persistence_figures(p, 0, -1, -1)[SH_RATIO]));
    sh_persistence_free(p);
    sh_stats_free(s);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"fixtures of five model families: sets, means, sparsity, entropy, mass",
         fixtures_of_five_families},
        {"every figure of the oracle's cases", cases_of_the_oracle},
        {"means over sequences, heads and layers", means_over_sequences_heads_and_layers},
        {"the order of adding does not matter", order_of_adding_does_not_matter},
        {"what was not recorded is named", missing_cells_are_named},
        {NULL, NULL},
    };
    return tap_run("persistence", tests);
}
