/* SPDX-License-Identifier: Apache-2.0 */
/* shears_sql.so: SQL functions that unpack blocks of scores, so that the sqlite3 shell, Python, R or
 * anything else that speaks SQLite reads a trace without this program:
 *
 *     .load ./shears_sql
 *     SELECT shears_score(blob, codec, first_row, n_rows, window, 300, 27) FROM scores
 *     WHERE sequence = 0 AND layer = 3 AND head = 5 AND 300 BETWEEN first_row AND first_row + n_rows - 1;
 *
 *     shears_row(blob, codec, first_row, n_rows, window, q)         float32 blob, keys 0..q, 0 where unseen
 *     shears_row_json(blob, codec, first_row, n_rows, window, q)    the same as a JSON array
 *     shears_score(blob, codec, first_row, n_rows, window, q, key)  one score
 *
 * A query outside the block gives NULL; a damaged blob is an SQL error. A store of another version is refused
 * when the module is loaded into it: its blobs may mean something else. */
#include <sqlite3ext.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"
#include "traces/store.h"

SQLITE_EXTENSION_INIT1

struct wanted {
    int q;
    float *row;                         /* [q + 1] once found */
};

static int take(void *to, const struct sh_row *r)
{
    struct wanted *w = to;
    if (r->q != w->q)
        return 0;
    w->row = xcalloc((size_t)w->q + 1, sizeof *w->row);
    for (int i = 0; i < (r->sparse ? r->n_stored : r->n); i++)
        w->row[r->sparse ? r->key[i] : r->first_key + i] = r->score[i];
    return 1;
}

/* The row asked for, to be freed; NULL when there is none (the result is then set). */
static float *row_of(sqlite3_context *context, sqlite3_value **arg)
{
    struct sh_err e;
    struct sh_block b = {.codec = sqlite3_value_int(arg[1]), .first_row = sqlite3_value_int(arg[2]),
                         .n_rows = sqlite3_value_int(arg[3]), .window = sqlite3_value_int(arg[4])};
    const void *blob = sqlite3_value_blob(arg[0]);
    *(const void **)&b.blob = blob;
    b.bytes = (size_t)sqlite3_value_bytes(arg[0]);
    struct wanted w = {.q = sqlite3_value_int(arg[5])};
    if (!blob || w.q < 0 || w.q < b.first_row || (int64_t)w.q - b.first_row >= b.n_rows) {
        sqlite3_result_null(context);
        return NULL;
    }
    if (sh_codec_rows(&b, take, &w, &e)) {
        free(w.row);
        sqlite3_result_error(context, e.text, -1);
        return NULL;
    }
    return w.row;
}

static void row_blob(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    float *row = row_of(context, arg);
    if (row)
        sqlite3_result_blob64(context, row, ((sqlite3_uint64)sqlite3_value_int(arg[5]) + 1) * sizeof *row,
                              SQLITE_TRANSIENT);
    free(row);
}

static void row_json(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    float *row = row_of(context, arg);
    if (!row)
        return;
    sqlite3_str *text = sqlite3_str_new(sqlite3_context_db_handle(context));
    for (int i = 0; i <= sqlite3_value_int(arg[5]); i++)
        sqlite3_str_appendf(text, "%s%.9g", i ? "," : "[", (double)row[i]);
    sqlite3_str_appendall(text, "]");
    sqlite3_result_text(context, sqlite3_str_finish(text), -1, sqlite3_free);
    free(row);
}

static void one_score(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    int key = sqlite3_value_int(arg[6]);
    float *row = row_of(context, arg);
    if (row && key >= 0 && key <= sqlite3_value_int(arg[5]))
        sqlite3_result_double(context, (double)row[key]);
    free(row);
}

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
    if (number(db, "PRAGMA application_id") != SH_STORE_APPLICATION || version == SH_STORE_VERSION)
        return SQLITE_OK;
    *message = sqlite3_mprintf("the store has version %d, shears_sql reads version %d", version, SH_STORE_VERSION);
    return SQLITE_ERROR;
}

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *db, char **message,
                                                                  const sqlite3_api_routines *api);

int sqlite3_extension_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {{"shears_row", 6, row_blob}, {"shears_row_json", 6, row_json}, {"shears_score", 7, one_score}};
    SQLITE_EXTENSION_INIT2(api);
    int code = check_version(db, message);
    for (size_t i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++)
        code = sqlite3_create_function_v2(db, functions[i].name, functions[i].n, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                          NULL, functions[i].call, NULL, NULL, NULL);
    return code;
}
