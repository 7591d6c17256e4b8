/* SPDX-License-Identifier: Apache-2.0 */
/* The accumulator of attention statistics: positions and counts against the oracle's, sparse rows
 * against full ones, the packed form against damage, the row sums against plain definitions. */
#include "traces/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/rng.h"
#include "src/base/row_figures.h"
#include "tests/tap.h"
#include "tests/unit/heads.h"

/* ---- the spec ---- */

static void alphas_are_read_and_spelled(void)
{
    static const struct { const char *text, *name; struct sh_alpha alpha; } good[] = {
        {"row", "row", {SH_ALPHA_ROW, 1}}, {"1/t", "row", {SH_ALPHA_ROW, 1}},
        {"2/t", "2/t", {SH_ALPHA_ROW, 2}}, {"0.50/t", "0.5/t", {SH_ALPHA_ROW, 0.5}},
        {"split", "split", {SH_ALPHA_SPLIT, 0}}, {"5e-2", "0.05", {SH_ALPHA_VALUE, 0.05}},
        {".1", "0.1", {SH_ALPHA_VALUE, 0.1}}};
    static const char *const wrong[] = {"",        "rows", "0",    "1",   "1.5", "-0.1",
                                        "+0.1",    " 0.1", "0.1 ", "nan", "inf", "inf/t",
                                        "0x1p-3",  "0/t",  "-1/t", "/t",  "2/T", "2/tt",
                                        "1e999/t", "1e",   "0.1.2"};
    struct sh_err e;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct sh_alpha a;
        char name[SH_ALPHA_NAME];
        CU_ASSERT_FATAL(sh_alpha_parse(good[i].text, &a, &e) == 0);
        CU_ASSERT(sh_alpha_equal(&a, &good[i].alpha));
        sh_alpha_name(&a, name);
        CU_ASSERT_STRING_EQUAL(name, good[i].name);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sh_alpha a = {SH_ALPHA_VALUE, 0.7};
        CU_ASSERT(sh_alpha_parse(wrong[i], &a, &e) == -1 && e.status == SH_MISUSED);
        CU_ASSERT(a.value == 0.7);
    }
}

static void awkward_numbers_survive_spelling(void)
{
    struct sh_err e;
    for (uint64_t i = 0; i < 2000; i++) {
        struct sh_alpha a = {i % 2 ? SH_ALPHA_VALUE : SH_ALPHA_ROW, sh_rng_uniform(5, i)}, b;
        char name[SH_ALPHA_NAME];
        sh_alpha_name(&a, name);
        CU_ASSERT_FATAL(sh_alpha_parse(name, &b, &e) == 0 && sh_alpha_equal(&a, &b));
    }
}

static void specs_survive_json(void)
{
    struct sh_stats_spec spec, back;
    struct sh_err e;
    sh_stats_spec_default(&spec);
    spec.alpha[spec.n_alpha++] = (struct sh_alpha){SH_ALPHA_VALUE, 1.0 / 3};
    spec.split[1] = 0.1 + 0.2;
    char *text = sh_stats_spec_write(&spec);
    CU_ASSERT_FATAL(sh_stats_spec_parse(text, &back, &e) == 0);
    CU_ASSERT(back.n_alpha == 6 && back.n_recent == 4 && back.n_split == 3 && back.window == 400);
    for (int i = 0; i < 6; i++)
        CU_ASSERT(sh_alpha_equal(&back.alpha[i], &spec.alpha[i]));
    CU_ASSERT(!memcmp(back.recent, spec.recent, 4 * sizeof(int)));
    CU_ASSERT(!memcmp(back.split, spec.split, 3 * sizeof(double)));
    free(text);
    CU_ASSERT(sh_stats_n_lane(&spec) == 8);             /* four, three for split, one */
    CU_ASSERT(sh_stats_lane(&spec, 4, 2) == 6 && sh_stats_lane(&spec, 5, 1) == 7);
}

static void impossible_specs_are_refused(void)
{
    static const char *const wrong[] = {
        "", "[]", "{}", "{\"alphas\":[],\"recents\":[],\"splits\":[]}",
        "{\"alphas\":[\"row\",\"1/t\"],\"recents\":[0],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[1],\"recents\":[0],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[\"split\"],\"recents\":[0],\"splits\":[],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[1,0],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[-1],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0.5],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0,1,2,3,4,5,6,7,8],\"splits\":[0.5],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0],\"splits\":[0.5,0.5],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0],\"splits\":[1],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0],\"splits\":[\"a\"],\"window\":4}",
        "{\"alphas\":[\"row\"],\"recents\":[0],\"splits\":[0.5],\"window\":0}",
        "{\"alphas\":[\"row\"],\"recents\":[0],\"splits\":[0.5],\"window\":99999999999}"};
    struct sh_stats_spec spec;
    struct sh_err e;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(sh_stats_spec_parse(wrong[i], &spec, &e) == -1);
}

/* ---- positions ---- */

static void check_list(const int32_t *found, const json_t *want)
{
    size_t lane, j, n = json_array_size(json_array_get(want, 0));
    json_t *row, *x;
    json_array_foreach(want, lane, row)
        json_array_foreach(row, j, x)
            CU_ASSERT(found[lane * n + j] == (int)json_integer_value(x));
}

static void positions_are_the_oracles(void)
{
    json_t *root = heads_json("cases.json"), *c, *want;
    size_t i, n;
    int checked = 0;
    json_array_foreach(root, i, c) {
        if (!(want = json_object_get(c, "positions")))
            continue;
        struct sh_stats_spec spec = heads_spec(c);
        float *x = heads_floats(json_string_value(json_object_get(c, "file")), &n);
        struct sh_stats *s = sh_stats_new(&spec, heads_int(c, "T"));
        heads_feed(s, x, heads_int(c, "context"));
        CU_ASSERT(sh_stats_is_complete(s));
        check_list(s->last, json_object_get(want, "last"));
        check_list(s->first, json_object_get(want, "first"));
        check_list(s->low, json_object_get(want, "low"));
        sh_stats_free(s);
        free(x);
        checked++;
    }
    CU_ASSERT(checked >= 5);
    json_decref(root);
}

static void rows_out_of_order_change_nothing(void)
{
    static const float row[] = {0.5f, 0.25f, 0.25f};
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    struct sh_stats *s = sh_stats_new(&spec, 3);
    int key[] = {1, 0}, outside[] = {0, 2};
    CU_ASSERT(sh_stats_row(s, 1, 0, row, 2) == -1);
    CU_ASSERT(sh_stats_row(s, 0, 0, row, 2) == -1);
    CU_ASSERT(sh_stats_row(s, 0, -1, row, 2) == -1);
    CU_ASSERT(sh_stats_row(s, 0, 0, row, 1) == 0 && sh_stats_row(s, 0, 0, row, 1) == -1);
    CU_ASSERT(sh_stats_row_sparse(s, 1, 0, 2, key, row, 2) == -1);
    CU_ASSERT(sh_stats_row_sparse(s, 1, 0, 2, outside, row, 2) == -1 && !s->sparse);
    CU_ASSERT(sh_stats_row(s, 1, 1, row, 1) == 0);
    CU_ASSERT(sh_stats_row(s, 2, 0, row, 3) == -1);     /* the first key fell */
    unsigned char *packed;
    CU_ASSERT(!sh_stats_is_complete(s) && sh_stats_pack(s, &packed) == 0);
    CU_ASSERT(sh_stats_row(s, 2, 1, row, 2) == 0 && sh_stats_is_complete(s));
    CU_ASSERT(sh_stats_row(s, 3, 1, row, 3) == -1);
    CU_ASSERT(s->sums.rows == 3 && s->sums.entries == 4);
    sh_stats_free(s);
}

/* ---- sparse rows ---- */

static void feed_sparse(struct sh_stats *s, const float *packed, int context)
{
    int key[512];
    float score[512];
    for (int q = 0; q < s->length; q++) {
        int first_key, n = heads_row(q, context, &first_key), stored = 0;
        for (int i = 0; i < n; i++)
            if ((double)packed[i] >= 1.0 / n) {
                key[stored] = first_key + i;
                score[stored++] = packed[i];
            }
        CU_ASSERT_FATAL(sh_stats_row_sparse(s, q, first_key, n, key, score, stored) == 0);
        packed += n;
    }
}

static void compare_sparse(const char *file, int length, int context)
{
    struct sh_stats_spec spec;
    struct sh_err e;
    size_t n, keys = (size_t)length;
    CU_ASSERT_FATAL(
        sh_stats_spec_parse("{\"alphas\":[\"row\",\"2/t\",\"10/t\"],\"recents\":[0,1,10],"
                            "\"splits\":[0.25,0.5],\"window\":40}",
                            &spec, &e) == 0);
    float *x = heads_floats(file, &n);
    struct sh_stats *full = sh_stats_new(&spec, length), *sparse = sh_stats_new(&spec, length);
    heads_feed(full, x, context);
    feed_sparse(sparse, x, context);
    CU_ASSERT(sparse->sparse && !full->sparse && sparse->sums.rows == 0);
    CU_ASSERT(!memcmp(full->last, sparse->last, 3 * keys * sizeof *full->last));
    CU_ASSERT(!memcmp(full->first, sparse->first, 9 * keys * sizeof *full->first));
    CU_ASSERT(!memcmp(full->low, sparse->low, 2 * keys * sizeof *full->low));
    for (int i = 0; i < 3 * 3 * SH_STATS_LAGS; i++) {
        CU_ASSERT(full->jaccard[i].sum == sparse->jaccard[i].sum);
        CU_ASSERT(full->jaccard[i].expected == sparse->jaccard[i].expected);
        CU_ASSERT(full->jaccard[i].rows == sparse->jaccard[i].rows);
    }
    sh_stats_free(full);
    sh_stats_free(sparse);
    free(x);
}

static void sparse_rows_tell_the_same(void)
{
    struct sh_alpha yes = {SH_ALPHA_ROW, 1}, no = {SH_ALPHA_ROW, 0.5},
                    neither = {SH_ALPHA_VALUE, 0.5};
    compare_sparse("random.case.f32", 260, 0);
    compare_sparse("windowed.case.f32", 200, 33);
    compare_sparse("ties.case.f32", 70, 0);
    CU_ASSERT(sh_stats_sparse_can(&yes) && !sh_stats_sparse_can(&no) &&
              !sh_stats_sparse_can(&neither));
}

/* ---- row sums ---- */

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

struct defined {                        /* the figures of one row, from its scores */
    double nats, mass, low;
    uint32_t mean, one;
};

static struct defined define(const float *row, int n)
{
    struct defined d = {0};
    float *sorted = memcpy(xcalloc((size_t)n, sizeof *sorted), row, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, descending);
    for (int i = 0; i < n; i++) {
        double p = (double)sorted[i];
        d.nats -= p > 0 ? p * log(p) : 0;
        d.mass += i < (n + 4) / 5 ? p : 0;
        d.low += p < 1.0 / n ? p : 0;
        d.mean += p < 1.0 / n;
        d.one += p < 0.01 * (double)sorted[0];
    }
    free(sorted);
    return d;
}

static void check_row(const float *row, int n)
{
    struct sh_row_figures f;
    struct defined d = define(row, n);
    sh_row_figures(row, n, &f);
    CU_ASSERT(f.below_1pct == d.one);
    CU_ASSERT(fabs(f.entropy - d.nats) <= 1e-7 * d.nats);
    CU_ASSERT(fabs(f.mass_top - d.mass) <= 1e-12 * d.mass);
    CU_ASSERT(fabs(f.low_mass - d.low) <= 1e-12 * d.low);
}

/* Rows of every shape that makes selecting hard: all equal, two values, one spike, zeros,
 * subnormals, wide and narrow spreads, at lengths around the vector width. */
static void row_figures_by_definition(void)
{
    static const int length[] = {1, 2, 3, 4, 5, 6, 15, 16, 17, 31, 33, 64, 100, 257, 1000, 3001};
    float row[3001];
    for (size_t k = 0; k < sizeof length / sizeof *length; k++)
        for (int shape = 0; shape < 8; shape++) {
            int n = length[k];
            double total = 0;
            for (int i = 0; i < n; i++) {
                double z = sh_rng_normal((uint64_t)shape, (uint64_t)i), x = exp(2 * z);
                switch (shape) {
                case 1: x = 1; break;
                case 2: x = i % 3 ? 1 : 1e-4; break;
                case 3: x = i == n / 2; break;
                case 4: x = i % 2 ? 0 : x; break;
                case 5: x = exp(0.01 * z); break;
                case 6: x = exp(12 * z); break;
                default: break;
                }
                row[i] = (float)x;
                total += x;
            }
            for (int i = 0; i < n && total > 0; i++)
                row[i] = shape == 7 && i % 4 ? 1e-41f : (float)((double)row[i] / total);
            check_row(row, n);
        }
}

static void check_sums(const char *file, int length, int context)
{
    struct sh_stats_spec spec;
    size_t n_score;
    uint64_t mean = 0, one = 0, two = 0, entries = 0;
    double nats = 0, share = 0, mass = 0;
    sh_stats_spec_default(&spec);
    float *x = heads_floats(file, &n_score);
    const float *row = x;
    struct sh_stats *s = sh_stats_new(&spec, length);
    heads_feed(s, x, context);
    for (int q = 0; q < length; q++) {
        int first_key, n = heads_row(q, context, &first_key);
        struct defined d = define(row, n);
        entries += (uint64_t)n;
        mean += d.mean;
        one += d.one;
        two += n > 1;
        nats += d.nats;
        share += n > 1 ? d.nats / log(n) : 0;
        mass += d.mass;
        row += n;
    }
    CU_ASSERT(s->sums.rows == (uint64_t)length && s->sums.rows_of_two == two);
    CU_ASSERT(s->sums.entries == entries && s->sums.below_mean == mean && s->sums.below_1pct == one);
    CU_ASSERT(fabs(s->sums.entropy - nats) <= 1e-7 * nats);
    CU_ASSERT(fabs(s->sums.normalised_entropy - share) <= 1e-7 * share);
    CU_ASSERT(fabs(s->sums.mass_top - mass) <= 1e-12 * mass);
    sh_stats_free(s);
    free(x);
}

static void row_sums_by_definition(void)
{
    check_sums("random.case.f32", 260, 0);
    check_sums("windowed.case.f32", 200, 33);
    check_sums("ties.case.f32", 70, 0);
    check_sums("length1.case.f32", 1, 0);
}

static void row_sums_alone(void)
{
    struct sh_stats_spec spec;
    size_t n;
    spec = (struct sh_stats_spec){.window = 400};
    float *x = heads_floats("length65.case.f32", &n);
    struct sh_stats *bare = sh_stats_new(&spec, 65);
    sh_stats_spec_default(&spec);
    struct sh_stats *full = sh_stats_new(&spec, 65);
    heads_feed(bare, x, 0);
    heads_feed(full, x, 0);
    CU_ASSERT(bare->n_lane == 0 && !bare->first && sh_stats_is_complete(bare));
    CU_ASSERT(!memcmp(&bare->sums, &full->sums, sizeof bare->sums));
    sh_stats_free(bare);
    sh_stats_free(full);
    free(x);
}

/* ---- the packed form ---- */

static size_t pack_case(const char *file, int length, int context, unsigned char **packed)
{
    struct sh_stats_spec spec;
    size_t n;
    sh_stats_spec_default(&spec);
    spec.window = 30;
    float *x = heads_floats(file, &n);
    struct sh_stats *s = sh_stats_new(&spec, length);
    heads_feed(s, x, context);
    size_t bytes = sh_stats_pack(s, packed);
    struct sh_stats *back = NULL;
    struct sh_err e;
    CU_ASSERT_FATAL(bytes > 0 && sh_stats_unpack(*packed, bytes, &back, &e) == 0);
    size_t keys = (size_t)length;
    CU_ASSERT(back->length == length && sh_stats_is_complete(back) && back->n_lane == s->n_lane);
    CU_ASSERT(!memcmp(&back->sums, &s->sums, sizeof s->sums));
    CU_ASSERT(!memcmp(back->last, s->last, 7 * keys * sizeof *s->last));
    CU_ASSERT(!memcmp(back->first, s->first, 28 * keys * sizeof *s->first));
    CU_ASSERT(!memcmp(back->low, s->low, 3 * keys * sizeof *s->low));
    for (int i = 0; i < 28 * SH_STATS_LAGS; i++)
        CU_ASSERT(!memcmp(&back->jaccard[i].sum, &s->jaccard[i].sum, 2 * sizeof(double)) &&
                  back->jaccard[i].rows == s->jaccard[i].rows);
    sh_stats_free(back);
    sh_stats_free(s);
    free(x);
    return bytes;
}

static void packing_loses_nothing(void)
{
    static const struct { const char *file; int length, context; } of[] = {
        {"random.case.f32", 260, 0}, {"windowed.case.f32", 200, 33}, {"ties.case.f32", 70, 0},
        {"length1.case.f32", 1, 0}, {"length2.case.f32", 2, 0}, {"length5.case.f32", 5, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        unsigned char *packed;
        pack_case(of[i].file, of[i].length, of[i].context, &packed);
        free(packed);
    }
}

/* One byte wrong: refused, or something that packs to those very bytes again. */
static void damaged_bytes_are_caught(void)
{
    unsigned char *packed, *again;
    struct sh_stats *s;
    struct sh_err e;
    size_t bytes = pack_case("ties.case.f32", 70, 0, &packed);
    int refused = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char was = packed[i];
        packed[i] = (unsigned char)(i % 3 ? was ^ 1u << i % 8 : 0xff);
        if (sh_stats_unpack(packed, bytes, &s, &e))
            refused++;
        else {
            CU_ASSERT(sh_stats_pack(s, &again) == bytes && !memcmp(again, packed, bytes));
            free(again);
            sh_stats_free(s);
        }
        packed[i] = was;
    }
    CU_ASSERT(refused > (int)bytes / 4);
    free(packed);
}

static void cut_bytes_are_refused(void)
{
    unsigned char *packed;
    struct sh_stats *s = NULL;
    struct sh_err e;
    size_t bytes = pack_case("length5.case.f32", 5, 0, &packed);
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *part = xmalloc(n); /* its own block, so that a checker sees overruns */
        memcpy(part, packed, n);
        CU_ASSERT(sh_stats_unpack(part, n, &s, &e) == -1 && s == NULL);
        free(part);
    }
    packed = xreallocarray(packed, bytes + 1, 1);
    packed[bytes] = 0;
    CU_ASSERT(sh_stats_unpack(packed, bytes + 1, &s, &e) == -1);
    packed[4] = 2;
    CU_ASSERT(sh_stats_unpack(packed, bytes, &s, &e) == -1 &&
              strstr(e.text, "found version 2") != NULL);
    free(packed);
}

/* 4-byte numbers, and a length that only the row sums could fill. */
static void long_heads_pack_too(void)
{
    struct sh_stats_spec spec;
    struct sh_err e;
    CU_ASSERT_FATAL(sh_stats_spec_parse("{\"alphas\":[\"0.4\"],\"recents\":[0,2],\"splits\":[0.5],"
                                        "\"window\":9}", &spec, &e) == 0);
    int length = 66000;
    struct sh_stats *s = sh_stats_new(&spec, length), *back;
    static const float row[3] = {0.7f, 0.1f, 0.2f};
    for (int q = 0; q < length; q++) {
        int n = q < 2 ? q + 1 : 3;
        CU_ASSERT_FATAL(sh_stats_row(s, q, q + 1 - n, row, n) == 0);
    }
    unsigned char *packed;
    size_t bytes = sh_stats_pack(s, &packed);
    CU_ASSERT_FATAL(sh_stats_unpack(packed, bytes, &back, &e) == 0);
    size_t keys = (size_t)length;
    CU_ASSERT(!memcmp(back->last, s->last, keys * sizeof *s->last));
    CU_ASSERT(!memcmp(back->first, s->first, 2 * keys * sizeof *s->first));
    CU_ASSERT(!memcmp(back->low, s->low, keys * sizeof *s->low));
    CU_ASSERT(s->first[0] == 0 && s->first[65000] == 65002 && s->last[65997] == 65999 &&
              s->last[65999] == -1);
    CU_ASSERT(s->first[keys + 65000] == 65002 && s->low[32995] == 2 && s->low[32999] == 1);
    sh_stats_free(s);
    sh_stats_free(back);
    free(packed);
}

/* Rows that have nothing to do with each other: every guess is wrong, by any distance. */
static void guesses_change_nothing(void)
{
    enum { N = 400 };
    float row[N];
    struct sh_row_guess guess = {0};
    int wrong = 0;
    for (uint64_t r = 0; r < 20000; r++) {
        int n = 1 + (int)(sh_rng(r, 0) % N), from = 0, above_mean = 0;
        double spread = 40 * sh_rng_uniform(r, 1), sum = 0;
        for (int i = 0; i < n; i++) {
            row[i] = sh_rng(r, 2) % 4 ? (float)exp(spread * sh_rng_normal(r, 3 + 2 * (uint64_t)i)) : 1.0f;
            row[i] = isfinite(row[i]) ? row[i] : 1e30f;
            sum += (double)row[i];
        }
        for (int i = 0; i < n; i++) {
            row[i] = (float)((double)row[i] / sum);
            from += row[i] >= guess.least;
            above_mean += row[i] >= sh_round_up(1.0 / n);
        }
        wrong += sh_row_mass_top_near(row, n, from, &guess) != sh_row_mass_top(row, n, above_mean);
    }
    CU_ASSERT(wrong == 0);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"alphas are read and spelled", alphas_are_read_and_spelled},
        {"awkward numbers survive spelling", awkward_numbers_survive_spelling},
        {"specs survive JSON", specs_survive_json},
        {"impossible specs are refused", impossible_specs_are_refused},
        {"first, last and low are the oracle's", positions_are_the_oracles},
        {"rows out of order change nothing", rows_out_of_order_change_nothing},
        {"sparse rows tell the same as full ones", sparse_rows_tell_the_same},
        {"row figures by definition", row_figures_by_definition},
        {"row sums by definition", row_sums_by_definition},
        {"row sums alone", row_sums_alone},
        {"packing loses nothing", packing_loses_nothing},
        {"damaged bytes are caught", damaged_bytes_are_caught},
        {"cut bytes are refused", cut_bytes_are_refused},
        {"long heads pack too", long_heads_pack_too},
        {"guesses change nothing of the largest fifth", guesses_change_nothing},
        {NULL, NULL},
    };
    return tap_run("stats", tests);
}
