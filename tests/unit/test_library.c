/* SPDX-License-Identifier: Apache-2.0 */
/* src/lib: the library through its public header. What it computes is what the commands do, which have tests of their
 * own; here is what a caller may do wrong, and several threads and processes. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/lib/shears.h"
#include "tests/fuzz/store_fixture.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static char db[2048];

static const char *store_path(void)
{
    if (!*db) {
        snprintf(db, sizeof db, "%s", scratch_path("library.db"));
        fixture_make(db);
    }
    return db;
}

/* The error of a failed call is complete and has this status. */
static int is_refused(int failed, struct shears_error **e, enum shears_status status)
{
    int good = failed && *e && shears_error_status(*e) == status && *shears_error_message(*e);
    shears_error_free(*e);
    *e = NULL;
    return good;
}

static void test_errors(void)
{
    struct shears_error *e = NULL;
    const struct shears_option wrong[] = {{"db", store_path()}, {"run", "1"}, {"budget", "2.5.1"}, {0}};
    CU_ASSERT_PTR_NULL_FATAL(shears_ask("replay", wrong, NULL, &e));
    CU_ASSERT_EQUAL(shears_error_status(e), SHEARS_MISUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(shears_error_what(e), "--budget"));
    CU_ASSERT_PTR_NOT_NULL(strstr(shears_error_found(e), "2.5.1"));
    CU_ASSERT(*shears_error_expected(e) != '\0');
    shears_error_free(e);
    e = NULL;
    CU_ASSERT_PTR_NULL_FATAL(shears_ask("persistance", NULL, NULL, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(shears_error_hint(e), "persistence"));
    shears_error_free(e);
    CU_ASSERT_PTR_NULL(shears_ask("persistence", NULL, NULL, NULL));        /* nobody wants to know why */
    CU_ASSERT_EQUAL(shears_error_status(NULL), SHEARS_OK);
    CU_ASSERT_STRING_EQUAL(shears_error_message(NULL), "");
    shears_error_free(NULL);
}

static void test_nothing(void)
{
    struct shears_error *e = NULL;
    size_t rows;
    float x[4];
    int32_t token;
    CU_ASSERT(is_refused(!shears_ask(NULL, NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_figure(NULL, NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_store_open(NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_store_open("", &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_store_create(NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_store_open("/nowhere/at all", &e), &e, SHEARS_FAILED));
    CU_ASSERT(is_refused(!shears_store_describe(NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_store_results(NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_tokens(NULL, 0, &token, 1, &e) < 0, &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_shape(NULL, 0, 0, 0, &rows, &rows, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_scores(NULL, 0, 0, 0, x, 2, 2, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_rows(NULL, 0, 0, 0, NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_vectors(NULL, 0, 0, 'q', 0, x, 4, &e) < 0, &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_replay(NULL, NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_result_text(NULL, "json", &e), &e, SHEARS_MISUSED));
    CU_ASSERT_EQUAL(shears_result_tables(NULL) + shears_table_rows(NULL) + shears_table_columns(NULL), 0);
    CU_ASSERT(!shears_table(NULL, "") && !shears_column(NULL, "x") && !shears_result_remark(NULL, 0));
    CU_ASSERT_STRING_EQUAL(shears_table_name(NULL), "");
    shears_store_close(NULL);
    shears_result_free(NULL);
    shears_text_free(NULL);
}

static void test_options(void)
{
    struct shears_error *e = NULL;
    const struct shears_option none[] = {{"", NULL}, {0}}, help[] = {{"help", NULL}, {0}},
                               odd[] = {{"x=1 --db", "t"}, {0}}, unknown[] = {{"modle", "x"}, {0}},
                               file[] = {{"plot-memory", "x.svg"}, {0}};
    CU_ASSERT(is_refused(!shears_ask("info", none, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_ask("info", help, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_ask("info", odd, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_ask("capacity", unknown, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_ask("plot", NULL, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_figure("capacity", file, NULL, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_figure("no such", NULL, NULL, &e), &e, SHEARS_MISUSED));
}

/* Tables have what --json has. */
static void test_tables(void)
{
    struct shears_error *e = NULL;
    const struct shears_option options[] = {{"model", "llama-3.1-8b"}, {"gpu", "H100-SXM"}, {"length", "8192"},
                                            {"budget", "0.1"}, {"budget", "0.2"}, {0}};
    struct shears_result *r = shears_ask("capacity", options, NULL, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    const struct shears_table *t = shears_result_table(r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_EQUAL(shears_table_rows(t), 2);
    CU_ASSERT_PTR_EQUAL(shears_table(r, shears_table_name(t)), t);
    CU_ASSERT_PTR_NULL(shears_result_table(r, shears_result_tables(r)));
    CU_ASSERT_PTR_NULL(shears_table_column(t, shears_table_columns(t)));
    for (size_t i = 0; i < shears_table_columns(t); i++) {
        const struct shears_column *c = shears_table_column(t, i);
        CU_ASSERT_EQUAL((c->ints != NULL) + (c->reals != NULL) + (c->texts != NULL), 1);
        CU_ASSERT_PTR_EQUAL(shears_column(t, c->name), c);
    }
    const struct shears_column *batch = shears_column(t, "batch");
    CU_ASSERT_FATAL(batch && batch->kind == SHEARS_INT);
    CU_ASSERT(batch->ints[0] > batch->ints[1] && batch->ints[1] > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(shears_result_text(r, "json", &e), "\"batch\""));
    CU_ASSERT(is_refused(!shears_result_text(r, "xml", &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(!shears_result_text(r, NULL, &e), &e, SHEARS_MISUSED));
    shears_result_free(r);
}

/* A list within a list: its rows say which item they are of. */
static void test_parents(void)
{
    struct shears_error *e = NULL;
    const struct shears_option options[] = {{"db", store_path()}, {"run", "1"}, {"policy", "window"}, {"budget", "2"},
                                            {"budget", "3"}, {0}};
    struct shears_result *r = shears_ask("replay", options, NULL, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    const struct shears_table *rows = shears_table(r, "results"), *layers = shears_table(r, "results.layers");
    CU_ASSERT_FATAL(rows && layers && shears_table_rows(rows) == 2);
    const struct shears_column *parent = shears_column(layers, "parent"), *layer = shears_column(layers, "layer");
    CU_ASSERT_FATAL(parent && layer && shears_table_rows(layers) > 2);
    size_t n = shears_table_rows(layers);
    CU_ASSERT(parent->ints[0] == 0 && parent->ints[n - 1] == 1 && layer->ints[0] == layer->ints[n / 2]);
    shears_result_free(r);
}

static void test_places(void)
{
    struct shears_error *e = NULL;
    struct shears_store *s = shears_store_open(store_path(), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_STRING_EQUAL(shears_store_path(s), store_path());
    struct shears_result *about = shears_store_describe(s, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(about);
    int id = (int)shears_column(shears_table(about, "sequences"), "id")->ints[0];
    size_t rows = 0, keys = 0;
    CU_ASSERT_EQUAL_FATAL(shears_store_shape(s, id, 0, 0, &rows, &keys, &e), 0);
    float *x = calloc(rows * keys, sizeof *x);
    CU_ASSERT_EQUAL_FATAL(shears_store_scores(s, id, 0, 0, x, rows, keys, &e), 0);
    for (size_t q = 0; q < rows; q++) {
        double sum = 0;
        for (size_t k = 0; k < keys; k++)
            sum += (double)x[q * keys + k];
        CU_ASSERT(fabs(sum - 1) < 0.05);
    }
    static const int bad[][3] = {{-1, 0, 0}, {1 << 30, 0, 0}, {0, -1, 0}, {0, 99, 0}, {0, 0, -1}, {0, 0, 99}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int at = bad[i][0] ? bad[i][0] : id;
        CU_ASSERT(is_refused(shears_store_shape(s, at, bad[i][1], bad[i][2], &rows, &keys, &e), &e, SHEARS_MISUSED));
        CU_ASSERT(is_refused(shears_store_vectors(s, at, bad[i][1], 'q', bad[i][2], x, 1, &e) < 0, &e, SHEARS_MISUSED));
    }
    CU_ASSERT(is_refused(shears_store_scores(s, id, 0, 0, x, rows + 1, keys, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_scores(s, id, 0, 0, x, rows, (size_t)-1, &e), &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_vectors(s, id, 0, 'x', 0, x, 1, &e) < 0, &e, SHEARS_MISUSED));
    CU_ASSERT(is_refused(shears_store_tokens(s, -7, NULL, 0, &e) < 0, &e, SHEARS_MISUSED));
    free(x);
    shears_result_free(about);
    shears_store_close(s);
}

/* ---- a policy from outside ---- */

static void copy_position(float *state, const struct shears_cache *c, const struct shears_step *s, float *score)
{
    (void)state;
    (void)s;
    for (int i = 0; i < c->n_slot; i++)
        score[i] = (float)c->pos[i];
}

static void test_policy(void)
{
    struct shears_error *e = NULL;
    const struct shears_knob knobs[] = {{"sinks", 0, 0, 8, 1}, {0}}, upside[] = {{"a", 0, 1, 0, 0}, {0}};
    struct shears_policy p = {.bytes = sizeof p, .name = "mine", .knobs = knobs, .rows = 1, .score = copy_position};
    const struct shears_option options[] = {{"db", store_path()}, {"run", "1"}, {"policy", "mine"},
                                            {"policy", "window"}, {"budget", "2"}, {0}};
    struct shears_result *r = shears_replay(&p, options, NULL, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    const double *mass = shears_column(shears_table(r, "results"), "kept_mass")->reals;
    CU_ASSERT_DOUBLE_EQUAL(mass[0], mass[1], 1e-12);
    shears_result_free(r);
    p.name = "h2o";
    CU_ASSERT(is_refused(!shears_replay(&p, options, NULL, &e), &e, SHEARS_MISUSED));
    p.name = "a:b";
    CU_ASSERT(is_refused(!shears_replay(&p, options, NULL, &e), &e, SHEARS_MISUSED));
    p.name = "mine";
    p.rows = 1u << 31;
    CU_ASSERT(is_refused(!shears_replay(&p, options, NULL, &e), &e, SHEARS_MISUSED));
    p.rows = 0;
    p.knobs = upside;
    CU_ASSERT(is_refused(!shears_replay(&p, options, NULL, &e), &e, SHEARS_MISUSED));
    p.knobs = NULL;
    p.bytes = 8;
    CU_ASSERT(is_refused(!shears_replay(&p, options, NULL, &e), &e, SHEARS_MISUSED));
}

/* ---- stop, threads, processes ---- */

static int stop(void *to, double share)
{
    int *calls = to;
    (void)share;
    return ++*calls;
}

static void test_stop(void)
{
    struct shears_error *e = NULL;
    int calls = 0;
    const struct shears_watch watch = {stop, &calls};
    const struct shears_option options[] = {{"model", "llama-3.1-8b"}, {"gpu", "H100-SXM"}, {"rate", "4"},
                                            {"prompt", "400"}, {"output", "100"}, {"requests", "1000000"}, {0}};
    CU_ASSERT(is_refused(!shears_ask("simulate", options, &watch, &e), &e, SHEARS_FAILED));
    CU_ASSERT(calls >= 1);
}

static void *ask_often(void *arg)
{
    long good = 0;
    const struct shears_option options[] = {{"db", store_path()}, {"run", "1"}, {"policy", "h2o"}, {"budget", "2"},
                                            {0}};
    for (int i = 0; i < 8; i++) {
        struct shears_error *e = NULL;
        struct shears_result *r = shears_ask("replay", options, NULL, &e);
        good += r && shears_table_rows(shears_table(r, "results")) == 1;
        shears_result_free(r);
        shears_error_free(e);
        good += !shears_ask("persistence", NULL, NULL, &e) && shears_error_status(e) == SHEARS_MISUSED;
        shears_error_free(e);
    }
    *(long *)arg = good;
    return NULL;
}

static void test_threads(void)
{
    pthread_t id[2];
    long good[2] = {0};
    store_path();
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&id[i], NULL, ask_often, &good[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(id[i], NULL);
    CU_ASSERT_EQUAL(good[0], 16);
    CU_ASSERT_EQUAL(good[1], 16);
}

/* A child asks for new work with threads of its own; a store from before is refused there, and still good here. */
static void test_fork(void)
{
    struct shears_error *e = NULL;
    struct shears_store *s = shears_store_open(store_path(), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    long good = 0;
    ask_often(&good);
    pid_t child = fork();
    if (!child) {
        long mine = 0;
        int refused = is_refused(!shears_store_describe(s, &e), &e, SHEARS_MISUSED);
        shears_store_close(s);
        ask_often(&mine);
        _exit(refused && mine == 16 ? 0 : 1);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(good, 16);
    struct shears_result *r = shears_store_describe(s, &e);
    CU_ASSERT_PTR_NOT_NULL(r);
    shears_result_free(r);
    shears_store_close(s);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"errors have their parts", test_errors},
        {"NULL is an error everywhere", test_nothing},
        {"options that are none", test_options},
        {"tables and columns", test_tables},
        {"lists within lists", test_parents},
        {"places that a store does not have", test_places},
        {"a policy from outside", test_policy},
        {"the caller stops the work", test_stop},
        {"two threads", test_threads},
        {"fork", test_fork},
        {0}};
    return tap_run("library", tests);
}
