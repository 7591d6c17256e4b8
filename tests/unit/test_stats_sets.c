/* SPDX-License-Identifier: Apache-2.0 */
/* Attention statistics made from what a backend hands out in place of scores: the very bits of those
 * made from the scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/heads.h"
#include "tests/unit/row_sets.h"
#include "traces/stats.h"
#include "traces/trace.h"

static void same_bits(const struct sh_stats *a, const struct sh_stats *b)
{
    const struct sh_stats_spec *spec = &a->spec;
    size_t keys = (size_t)a->length, lanes = (size_t)a->n_lane, cells = lanes * (size_t)spec->n_recent;
    CU_ASSERT(sh_stats_is_complete(a) && sh_stats_is_complete(b) && a->sparse == b->sparse);
    CU_ASSERT(a->n_lane == b->n_lane && !memcmp(&a->sums, &b->sums, sizeof a->sums));
    if (!lanes)
        return;
    CU_ASSERT(!memcmp(a->last, b->last, lanes * keys * sizeof *a->last));
    CU_ASSERT(!memcmp(a->first, b->first, cells * keys * sizeof *a->first));
    CU_ASSERT(!memcmp(a->low, b->low, (size_t)spec->n_split * keys * sizeof *a->low));
    for (size_t i = 0; i < cells * SH_STATS_LAGS; i++) {
        CU_ASSERT(!memcmp(&a->jaccard[i].sum, &b->jaccard[i].sum, 2 * sizeof(double)));
        CU_ASSERT(a->jaccard[i].rows == b->jaccard[i].rows);
    }
}

/* Feed a head as a backend does: a few rows at a time, here 1 to 97, their sets in words that begin
 * with those of the oldest row. Stray bits of keys that a row does not see must not matter. */
static void feed_sets(struct sh_stats *s, const float *rows, int window, int stray)
{
    struct sh_lanes lanes = row_sets_lanes(&s->spec, s->length, 0);
    size_t n_set = (size_t)lanes.n + 1;
    for (int q = 0, n; q < s->length; q += n) {
        struct sh_row_sets sets;
        n = 1 + (int)(sh_rng(3, (uint64_t)q) % 97);
        n = n < s->length - q ? n : s->length - q;
        row_sets_make(&lanes, rows, q, n, window, &sets);
        uint64_t *bits = (uint64_t *)(uintptr_t)sets.bits;
        size_t n_word = (size_t)sets.n_word;
        for (int i = 0; i < n; i++)
            for (size_t k = 0; stray && k < n_set * n_word; k++) {
                int key = 64 * (sets.first_word + (int)(k % n_word)), first = sh_row_start(q + i, window);
                for (int j = key; j < key + 64; j++)
                    if (j < first || j > q + i)
                        bits[(size_t)i * n_set * n_word + k] |= (uint64_t)1 << j % 64;
            }
        for (int i = 0; i < n; i++)
            CU_ASSERT_FATAL(sh_stats_row_sets(s, q + i, sh_row_start(q + i, window), bits + (size_t)i * n_set * n_word,
                                              sets.first_word, sets.n_word, &sets.figures[i]) == 0);
        rows += sh_rows_scores(q, n, window);
        row_sets_free(&sets);
    }
}

static void compare_sets(const struct sh_stats_spec *spec, const float *rows, int length, int window)
{
    for (int stray = 0; stray < 2; stray++) {
        struct sh_stats *full = sh_stats_new(spec, length), *sets = sh_stats_new(spec, length);
        heads_feed(full, rows, window);
        feed_sets(sets, rows, window, stray);
        same_bits(full, sets);
        sh_stats_free(full);
        sh_stats_free(sets);
    }
}

static void sets_tell_the_same(void)
{
    static const struct { const char *file; int length, window; } of[] = {
        {"random.case.f32", 260, 0}, {"windowed.case.f32", 200, 33}, {"ties.case.f32", 70, 0},
        {"length65.case.f32", 65, 0}, {"length1.case.f32", 1, 0}, {"length2.case.f32", 2, 0}};
    struct sh_stats_spec spec[3];
    struct sh_err e;
    size_t n;
    sh_stats_spec_default(&spec[0]);
    spec[1] = (struct sh_stats_spec){.window = 400};
    CU_ASSERT_FATAL(sh_stats_spec_parse("{\"alphas\":[\"0.3/t\",\"0.01\",\"split\",\"row\"],\"recents\":[0,5],"
                                        "\"splits\":[0.001,0.1,0.3,0.9],\"window\":40}", &spec[2], &e) == 0);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        float *x = heads_floats(of[i].file, &n);
        for (int k = 0; k < 3; k++)
            compare_sets(&spec[k], x, of[i].length, of[i].window);
        free(x);
    }
}

/* Longer than a block of rows, with windows at and around the width of a word. */
static void windowed_sets_tell_the_same(void)
{
    static const int window[] = {0, 1, 2, 63, 64, 65, 130, 300};
    enum { T = 300 };
    float *rows = xcalloc(T * (T + 1) / 2, sizeof *rows);
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    for (size_t w = 0; w < sizeof window / sizeof *window; w++) {
        float *row = rows;
        for (int q = 0; q < T; q++) {
            int n = q + 1 - sh_row_start(q, window[w]);
            double total = 0;
            for (int i = 0; i < n; i++)
                total += row[i] = (float)exp(2 * sh_rng_normal(w, (uint64_t)(q * T + i)));
            for (int i = 0; i < n; i++)
                row[i] = (float)((double)row[i] / total);
            row += n;
        }
        compare_sets(&spec, rows, T, window[w]);
    }
    free(rows);
}

static void sets_that_miss_keys_change_nothing(void)
{
    static const uint64_t bits[16] = {0};
    static const struct sh_row_figures figures = {0};
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    struct sh_stats *s = sh_stats_new(&spec, 70);
    CU_ASSERT(sh_stats_row_sets(s, 1, 0, bits, 0, 1, &figures) == -1);          /* not the next row */
    CU_ASSERT(sh_stats_row_sets(s, 0, 0, bits, 1, 1, &figures) == -1);
    CU_ASSERT(sh_stats_row_sets(s, 0, 0, bits, 0, 0, &figures) == -1);
    for (int q = 0; q < 64; q++)
        CU_ASSERT(sh_stats_row_sets(s, q, 0, bits, 0, 1, &figures) == 0);
    CU_ASSERT(sh_stats_row_sets(s, 64, 0, bits, 0, 1, &figures) == -1);         /* key 64 is left out */
    CU_ASSERT(sh_stats_row_sets(s, 64, 63, bits, 1, 1, &figures) == -1);        /* key 63 is */
    CU_ASSERT(s->n_row == 64 && s->sums.rows == 64);
    CU_ASSERT(sh_stats_row_sets(s, 64, 64, bits, 1, 1, &figures) == 0);
    CU_ASSERT(sh_stats_row_sets(s, 65, 63, bits, 0, 2, &figures) == -1);        /* the first key fell */
    sh_stats_free(s);
}

static void hostile_scores_do_no_harm(void)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, -0.0f, -1.0f, 3e38f, 1e-45f, 0.5f};
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    float *rows = xcalloc(300 * 301 / 2, sizeof *rows), *row = rows;
    for (int q = 0; q < 300; row += ++q)
        for (int j = 0; j <= q; j++)
            row[j] = strange[sh_rng((uint64_t)q, (uint64_t)j) % (uint64_t)(q % 7 + 2)];
    compare_sets(&spec, rows, 300, 0);
    free(rows);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"sets tell the same as rows, to the last bit", sets_tell_the_same},
        {"sets tell the same as rows with windows", windowed_sets_tell_the_same},
        {"sets that miss keys change nothing", sets_that_miss_keys_change_nothing},
        {"hostile scores do no harm, rows and sets agree", hostile_scores_do_no_harm},
        {NULL, NULL},
    };
    return tap_run("stats_sets", tests);
}
