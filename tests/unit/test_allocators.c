/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocator: budgets are those of an independent implementation in exact arithmetic
 * (tests/oracle/allocators.py), and the law of planner/allocator/allocator.h holds. An allocator that the golden file
 * does not know fails. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"

static struct sh_err e;

/* ---- golden ---- */

static int whole(const json_t *o, const char *key)
{
    return (int)json_integer_value(json_object_get(o, key));
}

static double *numbers(const json_t *o, const char *key)
{
    const json_t *all = json_object_get(o, key);
    size_t n = json_array_size(all);
    double *x = n ? xcalloc(n, sizeof *x) : NULL;
    for (size_t i = 0; i < n; i++)
        x[i] = json_number_value(json_array_get(all, i));
    return x;
}

static int *points(const json_t *o, const char *key, int *n)
{
    const json_t *all = json_object_get(o, key);
    *n = (int)json_array_size(all);
    int *x = xcalloc((size_t)*n + 1, sizeof *x);
    for (int k = 0; k < *n; k++)
        x[k] = (int)json_integer_value(json_array_get(all, (size_t)k));
    return x;
}

/* Sum over heads of the straight lines between the points: what a choice of budgets keeps. */
static double kept(const struct sh_allocation *a, const int *budget)
{
    double sum = 0;
    for (int i = 0; i < sh_allocation_first(a, a->n_layer); i++) {
        const double *y = a->curve + i * a->n_point;
        int k = 1;
        while (k < a->n_point - 1 && a->point[k] < budget[i])
            k++;
        sum += a->n_point < 2 ? y[0] : y[k - 1] + (y[k] - y[k - 1]) * (budget[i] - a->point[k - 1]) /
                                                      (a->point[k] - a->point[k - 1]);
    }
    return sum;
}

static void compare(const json_t *c, const struct sh_allocation *a, const int *budget)
{
    const json_t *want = json_object_get(c, "budget"), *best = json_object_get(c, "best");
    size_t n = (size_t)sh_allocation_first(a, a->n_layer), off = 0;
    for (size_t i = 0; i < n && json_is_array(want); i++)
        off += json_integer_value(json_array_get(want, i)) != budget[i];
    if (off)
        printf("# %s, mean %d of %d: %d heads differ\n", json_string_value(json_object_get(c, "allocator")), a->mean,
               a->n_token, (int)off);
    CU_ASSERT_EQUAL(off, 0);
    CU_ASSERT(!json_is_array(want) || json_array_size(want) == n);
    if (json_is_true(json_object_get(c, "concave")))    /* greedy is the best there is */
        CU_ASSERT_DOUBLE_EQUAL(kept(a, budget), json_number_value(best), 1e-9);
}

static void play(const json_t *c)
{
    struct sh_allocator_spec spec;
    double *persistence = numbers(c, "persistence"), *entropy = numbers(c, "entropy"), *curve = numbers(c, "curve"),
           *score = numbers(c, "score"), *loss = numbers(c, "loss");
    int n_point, n_loss, n_heads, *heads = points(c, "heads", &n_heads);
    int *at = points(c, "point", &n_point), *loss_at = points(c, "loss_point", &n_loss);
    struct sh_allocation a = {.n_layer = whole(c, "n_layer"), .n_head = whole(c, "n_head"), .mean = whole(c, "mean"),
                              .floor = whole(c, "floor"), .n_token = whole(c, "n_token"), .persistence = persistence,
                              .entropy = entropy, .curve = curve, .point = at, .n_point = n_point, .score = score,
                              .loss = loss, .loss_point = loss_at, .n_loss = n_loss,
                              .heads = n_heads ? heads : NULL};
    int *budget = xcalloc((size_t)a.n_layer * (size_t)a.n_head, sizeof *budget);
    CU_ASSERT_EQUAL_FATAL(sh_allocator_parse(json_string_value(json_object_get(c, "allocator")), &spec, &e), 0);
    CU_ASSERT_EQUAL_FATAL(sh_allocate(&spec, &a, budget, &e), 0);
    compare(c, &a, budget);
    free(persistence);
    free(entropy);
    free(curve);
    free(score);
    free(loss);
    free(at);
    free(heads);
    free(loss_at);
    free(budget);
}

static void golden(void)
{
    json_error_t error;
    const char *path = tap_golden("allocators.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_t *root = json_load_file(path, 0, &error), *cases = json_object_get(root, "cases"), *c;
    size_t i;
    CU_ASSERT_FATAL(json_array_size(cases) >= 200);
    for (int k = 0; sh_allocators[k]; k++) {
        size_t length = strlen(sh_allocators[k]->name);
        int n = 0;
        json_array_foreach(cases, i, c) {
            const char *name = json_string_value(json_object_get(c, "allocator"));
            n += strcspn(name, ":") == length && !memcmp(name, sh_allocators[k]->name, length);
        }
        if (n < 20)
            printf("# %s: %d golden cases\n", sh_allocators[k]->name, n);
        CU_ASSERT(n >= 20);
    }
    json_array_foreach(cases, i, c)
        play(c);
    json_decref(root);
}

/* ---- the law ---- */

enum { LAYERS = 7, HEADS = 3, ALL = LAYERS * HEADS, TOKENS = 90, POINTS = 9, LOSSES = 4 };

struct evidence {
    double persistence[LAYERS], entropy[ALL], curve[ALL * POINTS], score[ALL * TOKENS],
        loss[LAYERS * LOSSES];
    int point[POINTS], loss_point[LOSSES];
};

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static int rising(const void *a, const void *b)
{
    return falling(b, a);
}

/* Anything goes: `flat` makes all heads the same, so that only ties decide. */
static void draw(struct evidence *v, int floor_, uint64_t seed, int flat)
{
    uint64_t n = 0;
    for (int l = 0; l < LAYERS; l++)
        v->persistence[l] = flat ? 1 : sh_rng_uniform(seed, n++);
    for (int i = 0; i < ALL; i++) {
        v->entropy[i] = flat ? 0 : 5 * sh_rng_uniform(seed, n++);
        for (int k = 0; k < POINTS; k++)
            v->curve[i * POINTS + k] = flat ? 1 : sh_rng_uniform(seed, n++);
        qsort(v->curve + i * POINTS, POINTS, sizeof *v->curve, rising);
        for (int t = 0; t < TOKENS; t++)
            v->score[i * TOKENS + t] = flat ? 0.5 : sh_rng_uniform(seed, n++) * (1 + i % 4);
        qsort(v->score + i * TOKENS, TOKENS, sizeof *v->score, falling);
    }
    for (int k = 0; k < POINTS; k++)
        v->point[k] = floor_ + (TOKENS - floor_) * k / (POINTS - 1);
    for (int k = 0; k < LOSSES; k++)
        v->loss_point[k] = floor_ + (TOKENS - floor_) * k * k / (LOSSES * LOSSES);
    for (int i = 0; i < LAYERS * LOSSES; i++)           /* of measured losses some rise */
        v->loss[i] = flat ? 0 : sh_rng_uniform(seed, n++) / (1 + i % LOSSES);
}

static struct sh_allocation problem(const struct evidence *v, int floor_, int mean)
{
    return (struct sh_allocation){.n_layer = LAYERS, .n_head = HEADS, .mean = mean, .floor = floor_,
                                  .n_token = TOKENS, .persistence = v->persistence, .entropy = v->entropy,
                                  .curve = v->curve, .point = v->point, .n_point = POINTS, .score = v->score,
                                  .loss = v->loss, .loss_point = v->loss_point, .n_loss = LOSSES};
}

/* One allocator at every mean: the sum, the limits, the same again, and what happens from mean to mean. */
static void check_law(const struct sh_allocator_spec *s, const struct evidence *v, int floor_)
{
    int before[ALL] = {0}, budget[ALL], again[ALL], bad = 0;
    for (int mean = floor_; mean <= TOKENS; mean++) {
        struct sh_allocation a = problem(v, floor_, mean);
        CU_ASSERT_EQUAL_FATAL(sh_allocate(s, &a, budget, &e), 0);
        CU_ASSERT_EQUAL_FATAL(sh_allocate(s, &a, again, &e), 0);
        long long sum = 0;
        for (int i = 0; i < ALL; i++) {
            sum += budget[i];
            bad += budget[i] < floor_ || budget[i] > TOKENS;
            bad += budget[i] < before[i] - !s->allocator->monotone;
        }
        bad += sum != (long long)ALL * mean || memcmp(budget, again, sizeof budget) != 0;
        memcpy(before, budget, sizeof budget);
    }
    if (bad)
        printf("# %s breaks the law %d times, floor %d\n", s->allocator->name, bad, floor_);
    CU_ASSERT_EQUAL(bad, 0);
}

static void law(void)
{
    static const char *const knobs[][2] = {{"pyramid", ":beta=1e6"}, {"funnel", ":beta=1"}, {"persistence", ":c=0"},
                                           {"adakv", ":alpha=0"}, {"adakv", ":alpha=1"}};
    static struct evidence v;
    for (uint64_t seed = 0; seed < 12; seed++) {
        int floor_ = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 7 : 25;
        struct sh_allocator_spec s;
        draw(&v, floor_, seed, seed == 5);
        for (int k = 0; sh_allocators[k]; k++) {
            CU_ASSERT_EQUAL_FATAL(sh_allocator_parse(sh_allocators[k]->name, &s, &e), 0);
            check_law(&s, &v, floor_);
        }
        for (size_t k = 0; k < sizeof knobs / sizeof *knobs; k++) {
            char text[64];
            snprintf(text, sizeof text, "%s%s", knobs[k][0], knobs[k][1]);
            CU_ASSERT_EQUAL_FATAL(sh_allocator_parse(text, &s, &e), 0);
            check_law(&s, &v, floor_);
        }
    }
}

/* What the names promise: more to early layers, to late ones, to those of low persistence. */
static void direction(void)
{
    static struct evidence v;
    int budget[ALL];
    struct sh_allocator_spec s;
    draw(&v, 5, 3, 0);
    for (int l = 0; l < LAYERS; l++)
        v.persistence[l] = 0.95 - 0.1 * l;
    struct sh_allocation a = problem(&v, 5, 30);
    static const char *const to_late[] = {"funnel", "persistence"};
    for (int k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL_FATAL(sh_allocator_parse(to_late[k], &s, &e), 0);
        CU_ASSERT_EQUAL_FATAL(sh_allocate(&s, &a, budget, &e), 0);
        for (int l = 1; l < LAYERS; l++)
            CU_ASSERT(budget[l * HEADS] > budget[(l - 1) * HEADS]);
    }
    CU_ASSERT_EQUAL_FATAL(sh_allocator_parse("pyramid", &s, &e), 0);
    CU_ASSERT_EQUAL_FATAL(sh_allocate(&s, &a, budget, &e), 0);
    for (int l = 1; l < LAYERS; l++)
        CU_ASSERT(budget[l * HEADS] < budget[(l - 1) * HEADS]);
    /* protected 4: the last layer has 4 + 26 / 20, the first 4 + 2 * 26 - 26 / 20 */
    CU_ASSERT(budget[(LAYERS - 1) * HEADS] == 5 || budget[(LAYERS - 1) * HEADS] == 6);
    CU_ASSERT(budget[0] == 54 || budget[0] == 55);
}

/* ---- refusals ---- */

static void refused(const char *name, const struct sh_allocation *a, const char *why)
{
    struct sh_allocator_spec s;
    int budget[ALL];
    memset(budget, 99, sizeof budget);
    CU_ASSERT_EQUAL_FATAL(sh_allocator_parse(name, &s, &e), 0);
    CU_ASSERT_EQUAL(sh_allocate(&s, a, budget, &e), -1);
    if (!strstr(e.text, why))
        printf("# %s: expected \"%s\", found \"%s\"\n", name, why, e.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, why));
    CU_ASSERT_EQUAL(budget[0], 0x63636363);             /* untouched */
}

static void evidence_missing(void)
{
    static struct evidence v;
    draw(&v, 5, 1, 0);
    struct sh_allocation none = {.n_layer = LAYERS, .n_head = HEADS, .mean = 20, .floor = 5, .n_token = TOKENS};
    refused("persistence", &none, "the allocator persistence needs persistence ratios, but no measurements were given");
    refused("entropy", &none, "the allocator entropy needs entropies");
    refused("adakv", &none, "the allocator adakv needs attention per key");
    refused("greedy", &none, "the allocator greedy needs budget curves");
    refused("loss", &none, "the allocator loss needs budget curves");
    v.persistence[2] = (double)NAN;
    v.entropy[4] = -1;
    v.curve[POINTS * 5] = 1.5;
    v.loss[LOSSES * 3 + 1] = (double)NAN;
    v.score[TOKENS * 7 + 3] = (double)NAN;
    struct sh_allocation a = problem(&v, 5, 20);
    refused("persistence", &a, "which layer 2 does not have");
    refused("entropy", &a, "which layer 1, head 1 does not have");
    refused("greedy", &a, "which layer 1, head 2 does not have");
    refused("adakv", &a, "which layer 2, head 1 does not have");
    draw(&v, 5, 1, 0);
    v.point[3] = v.point[2];
    refused("greedy", &a, "from 5 to 90");
    a.mean = 4;
    refused("uniform", &a, "a mean of 4 tokens");
    a.mean = TOKENS + 1;
    refused("pyramid", &a, "a mean of 91 tokens");
}

static void misread(const char *text, const char *why, const char *hint)
{
    struct sh_allocator_spec s = {0};
    CU_ASSERT_EQUAL(sh_allocator_parse(text, &s, &e), -1);
    CU_ASSERT_EQUAL(e.status, SH_MISUSED);
    CU_ASSERT_PTR_NULL(s.allocator);
    if (!strstr(e.text, why) || !strstr(e.hint, hint))
        printf("# %s: \"%s\" (%s)\n", text, e.text, e.hint);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, why));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.hint, hint));
}

static void texts(void)
{
    struct sh_allocator_spec s;
    char knobs[SH_POLICY_TEXT];
    CU_ASSERT_EQUAL(sh_allocator_parse("persistence:recent=10,c=0.5", &s, &e), 0);
    CU_ASSERT_STRING_EQUAL(sh_allocator_knobs(&s, knobs), "c=0.5,alpha=1,recent=10");
    CU_ASSERT(sh_allocator_knob(&s, "recent") == 10);
    CU_ASSERT_EQUAL(sh_allocator_parse("uniform", &s, &e), 0);
    CU_ASSERT_STRING_EQUAL(sh_allocator_knobs(&s, knobs), "");
    misread("piramid", "unknown allocator \"piramid\"", "did you mean pyramid");
    misread("", "unknown allocator \"\"", "shears plan --help lists them");
    misread("pyramid:bet=2", "pyramid has no knob \"bet\"", "did you mean beta?");
    misread("uniform:beta=2", "uniform has no knob \"beta\"", "it has no knobs at all");
    misread("pyramid:beta", "pyramid: found \"beta\"", "");
    misread("pyramid:beta=0.5", "pyramid: beta=0.5, expected a number from 1 to", "");
    misread("pyramid:beta=nan", "pyramid: beta=nan, expected", "");
    misread("pyramid:beta=2,beta=3", "pyramid: beta is set twice", "");
    misread("persistence:alpha=1.5", "persistence: alpha=1.5, expected a whole number", "");
    misread("pyramid:", "pyramid: found \"\"", "");
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"budgets are those of an independent implementation; greedy beats every other split", golden},
        {"exact sums, floors, ceilings, the same again, and rising with the mean", law},
        {"more to early layers, to late ones, to those of low persistence", direction},
        {"evidence that is missing or no number is named", evidence_missing},
        {"names and knobs as people write them", texts},
        {NULL, NULL}};
    return tap_run("allocators", tests);
}
