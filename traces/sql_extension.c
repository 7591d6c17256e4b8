/* SPDX-License-Identifier: Apache-2.0 */
/* shears_sql.so: SQL functions that unpack the blobs of a trace store, so that the sqlite3 shell, Python, R and any
 * other SQLite client can read a trace without this program:
 *
 *     .load ./shears_sql
 *     SELECT q, key, score FROM scores, shears_rows(blob, codec, first_row, n_rows, window)
 *     WHERE sequence = 0 AND layer = 3 AND head = 5;
 *
 * Blocks of scores (their columns are blob, codec, first_row, n_rows, window):
 *     shears_rows(BLOCK)             a table: q, key, score; for sparse blocks, of the stored scores only
 *     shears_row(BLOCK, q)           float32 blob, keys 0 to the last that q sees, 0 where no score is stored
 *     shears_row_json(BLOCK, q)      the same as a JSON array
 *     shears_score(BLOCK, q, key)    one score
 *     shears_residual(BLOCK, q)      the mass of the scores that a sparse block omits; 0 for dense blocks
 * Vectors:
 *     shears_vector(blob, codec, n_tokens, t)        float32 blob [d_head]
 *     shears_vector_json(blob, codec, n_tokens, t)
 * Statistics:
 *     shears_stats_json(blob)        an object, described in sql_stats.c
 *
 * NULL arguments and queries or tokens out of range give NULL; a damaged blob is an SQL error. The module refuses to
 * load into a store of another version, whose blobs may have another meaning. */
#include <sqlite3ext.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces/sql.h"
#include "traces/store.h"

SQLITE_EXTENSION_INIT1

enum { BLOCK_ARGS = 5, MOST_ROWS = 1 << 22 };

/* ---- arguments ---- */

int sh_sql_int(sqlite3_value *v)
{
    sqlite3_int64 x = sqlite3_value_int64(v);
    return sqlite3_value_type(v) != SQLITE_INTEGER || x < INT32_MIN || x > INT32_MAX ? INT32_MIN : (int)x;
}

/* 0: an argument is NULL. */
static int all_there(int n, sqlite3_value **arg)
{
    int there = 1;
    for (int i = 0; i < n; i++)
        there &= sqlite3_value_type(arg[i]) != SQLITE_NULL;
    return there;
}

/* The blob remains SQLite's. */
static void set_blob(struct sh_block *b, sqlite3_value *v)
{
    const void *blob = sqlite3_value_blob(v);   /* NULL when empty */
    *(const void **)&b->blob = blob ? blob : "";
    b->bytes = blob ? (size_t)sqlite3_value_bytes(v) : 0;
}

struct sh_block sh_sql_block(sqlite3_value **arg)
{
    struct sh_block b = {.codec = sh_sql_int(arg[1]), .first_row = sh_sql_int(arg[2]), .n_rows = sh_sql_int(arg[3]),
                         .window = sh_sql_int(arg[4])};
    set_blob(&b, arg[0]);
    return b;
}

/* The result: a blob, or for functions with user data a JSON array. Takes ownership of the numbers. */
static void give(sqlite3_context *context, float *x, size_t n)
{
    if (!sqlite3_user_data(context)) {
        sqlite3_result_blob64(context, x, n * sizeof *x, free);
        return;
    }
    sqlite3_str *text = sqlite3_str_new(sqlite3_context_db_handle(context));
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(text, "%s%.9g", i ? "," : "[", (double)x[i]);
    sqlite3_str_appendall(text, n ? "]" : "[]");
    free(x);
    int code = sqlite3_str_errcode(text);
    char *json = sqlite3_str_finish(text);
    if (code == SQLITE_OK && json)
        sqlite3_result_text(context, json, -1, sqlite3_free);
    else
        sqlite3_result_error_code(context, code ? code : SQLITE_NOMEM);
    if (code != SQLITE_OK)
        sqlite3_free(json);
}

/* ---- one row ---- */

struct wanted {
    int q, n, full;                     /* full: out of memory                   */
    float *row;                         /* [n] once found                        */
    double residual;
};

static int take(void *to, const struct sh_row *r)
{
    struct wanted *w = to;
    if (r->q != w->q)
        return 0;
    w->n = r->first_key + r->n;
    w->residual = r->sparse ? (double)r->residual : 0;
    w->row = calloc((size_t)w->n, sizeof *w->row);
    w->full = !w->row;
    for (int i = 0; w->row && i < (r->sparse ? r->n_stored : r->n); i++)
        w->row[r->sparse ? r->key[i] : r->first_key + i] = r->score[i];
    return 1;
}

/* The row asked for, whose `row` the caller frees; NULL when there is none (the SQL result is then set). */
static struct wanted row_of(sqlite3_context *context, sqlite3_value **arg)
{
    struct sh_err e;
    struct wanted w = {.q = sh_sql_int(arg[BLOCK_ARGS])};
    if (!all_there(BLOCK_ARGS + 1, arg))
        return w;                               /* without a result the function returns NULL */
    struct sh_block b = sh_sql_block(arg);
    if (w.q < 0 || w.q < b.first_row || (int64_t)w.q - b.first_row >= b.n_rows)
        return w;
    if (sh_codec_rows_any(&b, take, &w, &e)) {
        free(w.row);
        w.row = NULL;
        sqlite3_result_error(context, e.text, -1);
    } else if (w.full) {
        sqlite3_result_error_nomem(context);
    }
    return w;
}

static void whole_row(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    struct wanted w = row_of(context, arg);
    if (w.row)
        give(context, w.row, (size_t)w.n);
}

static void one_score(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    int key = sh_sql_int(arg[BLOCK_ARGS + 1]);
    struct wanted w = row_of(context, arg);
    if (w.row && key >= 0 && key < w.n)
        sqlite3_result_double(context, (double)w.row[key]);
    free(w.row);
}

static void residual(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    struct wanted w = row_of(context, arg);
    if (w.row)
        sqlite3_result_double(context, w.residual);
    free(w.row);
}

/* ---- vectors ---- */

static void vector(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    struct sh_err e;
    struct sh_block b = {.codec = sh_sql_int(arg[1])};
    int n_token = sh_sql_int(arg[2]), t = sh_sql_int(arg[3]);
    size_t count;
    if (!all_there(4, arg) || t < 0 || t >= n_token || n_token > MOST_ROWS)
        return;
    set_blob(&b, arg[0]);
    float *all = sh_codec_all_floats(&b, &count, &e);
    if (all && count % (size_t)n_token) {
        sh_fail(&e, "%zu numbers are not a multiple of %d tokens", count, n_token);
        free(all);
        all = NULL;
    }
    if (!all) {
        sqlite3_result_error(context, e.text, -1);
        return;
    }
    size_t d_head = count / (size_t)n_token;
    memmove(all, all + (size_t)t * d_head, d_head * sizeof *all);
    give(context, all, d_head);
}

/* ---- statistics ---- */

static void stats_json(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    struct sh_err e;
    struct sh_block b = {0};
    if (!all_there(1, arg))
        return;
    set_blob(&b, arg[0]);
    char *text = sh_sql_stats(b.blob, b.bytes, &e);
    if (text)
        sqlite3_result_text(context, text, -1, free);
    else
        sqlite3_result_error(context, e.text, -1);
}

/* ---- loading ---- */

static int number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q = NULL;
    int value = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW
                    ? sqlite3_column_int(q, 0) : 0;
    sqlite3_finalize(q);
    return value;
}

static int check_version(sqlite3 *db, char **message)
{
    int version = number(db, "PRAGMA user_version");
    if (number(db, "PRAGMA application_id") != SH_STORE_APPLICATION || version == SH_STORE_VERSION ||
        version == SH_STORE_ORDERLESS)
        return SQLITE_OK;
    *message = sqlite3_mprintf("store version %d, shears_sql reads versions %d and %d", version,
                               SH_STORE_VERSION, SH_STORE_ORDERLESS);
    return SQLITE_ERROR;
}

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *db, char **message,
                                                                  const sqlite3_api_routines *api);

int sqlite3_extension_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static char as_json;
    static const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
        void *data;
    } functions[] = {{"shears_row", 6, whole_row, NULL}, {"shears_row_json", 6, whole_row, &as_json},
                     {"shears_score", 7, one_score, NULL}, {"shears_residual", 6, residual, NULL},
                     {"shears_vector", 4, vector, NULL}, {"shears_vector_json", 4, vector, &as_json},
                     {"shears_stats_json", 1, stats_json, NULL}};
    SQLITE_EXTENSION_INIT2(api);
    int code = check_version(db, message);
    for (size_t i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++)
        code = sqlite3_create_function_v2(db, functions[i].name, functions[i].n, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                          functions[i].data, functions[i].call, NULL, NULL, NULL);
    return code == SQLITE_OK ? sh_sql_rows_table(db) : code;
}
