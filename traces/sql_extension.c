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
 *     shears_stats_json(blob)        an object, described below
 *
 * NULL arguments and queries or tokens out of range give NULL; a damaged blob is an SQL error. The module refuses to
 * load into a store of another version, whose blobs may have another meaning. */
#include <sqlite3ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/codec.h"
#include "traces/stats.h"
#include "traces/store.h"

SQLITE_EXTENSION_INIT1

enum { BLOCK_ARGS = 5, MOST_ROWS = 1 << 22, MOST_STATS = 1 << 27 };

/* ---- arguments ---- */

/* Numbers out of the range of int become values that every check rejects. */
static int whole(sqlite3_value *v)
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

static struct sh_block block_of(sqlite3_value **arg)
{
    struct sh_block b = {.codec = whole(arg[1]), .first_row = whole(arg[2]), .n_rows = whole(arg[3]),
                         .window = whole(arg[4])};
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
    struct wanted w = {.q = whole(arg[BLOCK_ARGS])};
    if (!all_there(BLOCK_ARGS + 1, arg))
        return w;                               /* without a result the function returns NULL */
    struct sh_block b = block_of(arg);
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
    int key = whole(arg[BLOCK_ARGS + 1]);
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
    struct sh_block b = {.codec = whole(arg[1])};
    int n_token = whole(arg[2]), t = whole(arg[3]);
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

/* The JSON object of statistics has
 *     length, sparse, spec (alpha, recent, split, window as in run.statistics),
 *     rows, entries, below_mean, below_1pct, rows_of_two, entropy, normalised_entropy, mass_top: sums over rows,
 *     last[lane][key], first[lane][recent][key]: rows, null for never; low[split][key],
 *     jaccard[lane][recent][lag] {sum, expected, rows}, lags 1, 8, 64
 * with the meanings given in traces/stats.h. */

/* [[…], …]: `n_list` lists of n > 0 numbers, one after another; -1 as null. */
static void lists(FILE *f, const int32_t *x, size_t n_list, size_t n)
{
    putc('[', f);
    for (size_t i = 0; i < n_list * n; i++) {
        fputs(i % n ? "," : i ? "],[" : "[", f);
        if (x[i] < 0)
            fputs("null", f);
        else
            fprintf(f, "%d", (int)x[i]);
    }
    fputs(n_list ? "]]" : "]", f);
}

static void likenesses(FILE *f, const struct sh_jaccard *j)
{
    for (int i = 0; i < SH_STATS_LAGS; i++)
        fprintf(f, "%s{\"sum\":%.17g,\"expected\":%.17g,\"rows\":%u}", i ? "," : "[", j[i].sum, j[i].expected,
                (unsigned)j[i].rows);
    putc(']', f);
}

static void cells(FILE *f, const struct sh_stats *s)
{
    size_t n = (size_t)s->length, n_recent = (size_t)s->spec.n_recent;
    fputs(",\"last\":", f);
    lists(f, s->last, (size_t)s->n_lane, n);
    fputs(",\"first\":[", f);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++) {
        fputs(lane ? "," : "", f);
        lists(f, s->first + lane * n_recent * n, n_recent, n);
    }
    fputs("],\"low\":", f);
    lists(f, s->low, (size_t)s->spec.n_split, n);
    fputs(",\"jaccard\":[", f);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++) {
        fputs(lane ? ",[" : "[", f);
        for (size_t i = 0; i < n_recent; i++) {
            fputs(i ? "," : "", f);
            likenesses(f, s->jaccard + (lane * n_recent + i) * SH_STATS_LAGS);
        }
        putc(']', f);
    }
    putc(']', f);
}

static char *write_stats(const struct sh_stats *s, struct sh_err *e)
{
    char *text = NULL, *spec = sh_stats_spec_write(&s->spec);
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    const struct sh_row_sums *r = &s->sums;
    if (f) {
        fprintf(f, "{\"length\":%d,\"sparse\":%s,\"spec\":%s,\"rows\":%llu,\"entries\":%llu,\"below_mean\":%llu,"
                "\"below_1pct\":%llu,\"rows_of_two\":%llu,\"entropy\":%.17g,\"normalised_entropy\":%.17g,"
                "\"mass_top\":%.17g", s->length, s->sparse ? "true" : "false", spec, (unsigned long long)r->rows,
                (unsigned long long)r->entries, (unsigned long long)r->below_mean, (unsigned long long)r->below_1pct,
                (unsigned long long)r->rows_of_two, r->entropy, r->normalised_entropy, r->mass_top);
        if (s->n_lane)
            cells(f, s);
        putc('}', f);
    }
    free(spec);
    int bad = !f || ferror(f);
    if (f && fclose(f))
        bad = 1;
    if (!bad)
        return text;
    free(text);
    sh_fail(e, "the statistics do not fit into memory");
    return NULL;
}

static void stats_json(sqlite3_context *context, int n, sqlite3_value **arg)
{
    (void)n;
    struct sh_err e;
    struct sh_block b = {0};
    if (!all_there(1, arg))
        return;
    set_blob(&b, arg[0]);
    unsigned char *plain = NULL;
    size_t bytes;
    struct sh_stats *s = NULL;
    char *text = NULL;
    if (!sh_codec_unbytes(b.blob, b.bytes, MOST_STATS, &plain, &bytes, &e) && !sh_stats_unpack(plain, bytes, &s, &e))
        text = write_stats(s, &e);
    sh_stats_free(s);
    free(plain);
    if (text)
        sqlite3_result_text(context, text, -1, free);
    else
        sqlite3_result_error(context, e.text, -1);
}

/* ---- the table shears_rows ---- */

/* Its arguments are hidden columns, its rows the stored scores of one block, decoded when the table is queried. A
 * constraint q = N is answered without a scan. */
enum { COLUMN_Q, COLUMN_KEY, COLUMN_SCORE, COLUMN_ARGS, ALL_ARGS = (1 << BLOCK_ARGS) - 1 };

struct score { int q, key; float score; };

struct cursor {
    struct sqlite3_vtab_cursor base;
    struct score *at;                   /* [n] */
    size_t n, cap, now;
    int only_q, is_full;                /* only_q: -1: all; is_full: out of memory      */
    sqlite3_value *arg[BLOCK_ARGS];     /* the arguments, readable as hidden columns    */
};

static int connect_to(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    (void)aux, (void)argc, (void)argv, (void)message;
    int code = sqlite3_declare_vtab(db, "CREATE TABLE x(q INTEGER, key INTEGER, score REAL, its_blob HIDDEN,"
                                    " its_codec HIDDEN, its_first_row HIDDEN, its_n_rows HIDDEN, its_window HIDDEN)");
    if (code != SQLITE_OK)
        return code;
    *out = sqlite3_malloc(sizeof **out);
    if (*out)
        memset(*out, 0, sizeof **out);
    return *out ? SQLITE_OK : SQLITE_NOMEM;
}

static int disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* idxNum: one bit per argument given, and one for q. */
static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int place[BLOCK_ARGS + 1] = {0}, given = 0, n = 0;
    (void)table;
    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;
        int arg = column == COLUMN_Q ? BLOCK_ARGS : column - COLUMN_ARGS;
        if ((column != COLUMN_Q && column < COLUMN_ARGS) || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable) {
            if (arg < BLOCK_ARGS)
                return SQLITE_CONSTRAINT;       /* not usable until all arguments are given */
            continue;
        }
        given |= 1 << arg;
        place[arg] = i + 1;
    }
    for (int arg = 0; arg <= BLOCK_ARGS; arg++)
        if (place[arg]) {
            info->aConstraintUsage[place[arg] - 1].argvIndex = ++n;
            info->aConstraintUsage[place[arg] - 1].omit = arg < BLOCK_ARGS;
        }
    info->idxNum = given;
    info->estimatedCost = given & 1 << BLOCK_ARGS ? 1e3 : 1e5;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    struct cursor *c = calloc(1, sizeof *c);
    if (c)
        *out = &c->base;
    return c ? SQLITE_OK : SQLITE_NOMEM;
}

static void forget(struct cursor *c)
{
    for (int i = 0; i < BLOCK_ARGS; i++)
        sqlite3_value_free(c->arg[i]);
    free(c->at);
    *c = (struct cursor){.base = c->base};
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    forget(c);
    free(c);
    return SQLITE_OK;
}

static int take_scores(void *to, const struct sh_row *r)
{
    struct cursor *c = to;
    int n = r->sparse ? r->n_stored : r->n;
    if (c->only_q >= 0 && r->q != c->only_q)
        return r->q > c->only_q;
    if (c->n + (size_t)n > c->cap) {
        size_t cap = 2 * (c->n + (size_t)n);
        struct score *more = realloc(c->at, cap * sizeof *more);
        if (!more)
            return c->is_full = 1;
        c->at = more;
        c->cap = cap;
    }
    for (int i = 0; i < n; i++)
        c->at[c->n++] = (struct score){r->q, r->sparse ? r->key[i] : r->first_key + i, r->score[i]};
    return 0;
}

static int filter(sqlite3_vtab_cursor *base, int given, const char *name, int argc, sqlite3_value **arg)
{
    struct cursor *c = (struct cursor *)base;
    struct sh_err e;
    (void)name;
    forget(c);
    if ((given & ALL_ARGS) != ALL_ARGS) {
        base->pVtab->zErrMsg = sqlite3_mprintf("shears_rows takes blob, codec, first_row, n_rows, window");
        return SQLITE_ERROR;
    }
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(arg[i]) == SQLITE_NULL)
            return SQLITE_OK;                   /* a NULL block has no rows */
    for (int i = 0; i < BLOCK_ARGS; i++)
        if (!(c->arg[i] = sqlite3_value_dup(arg[i])))
            return SQLITE_NOMEM;
    struct sh_block b = block_of(c->arg);
    int has_q = given & 1 << BLOCK_ARGS && sqlite3_value_type(arg[BLOCK_ARGS]) == SQLITE_INTEGER;
    c->only_q = has_q ? whole(arg[BLOCK_ARGS]) : -1;
    if (sh_codec_rows_any(&b, take_scores, c, &e)) {
        base->pVtab->zErrMsg = sqlite3_mprintf("%s", e.text);
        return SQLITE_ERROR;
    }
    return c->is_full ? SQLITE_NOMEM : SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->now++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (struct cursor *)base;
    return c->now >= c->n;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
    const struct cursor *c = (struct cursor *)base;
    const struct score *s = &c->at[c->now];
    if (i == COLUMN_SCORE)
        sqlite3_result_double(context, (double)s->score);
    else if (i >= COLUMN_ARGS)
        sqlite3_result_value(context, c->arg[i - COLUMN_ARGS]);
    else
        sqlite3_result_int(context, i == COLUMN_Q ? s->q : s->key);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((struct cursor *)base)->now;
    return SQLITE_OK;
}

static const sqlite3_module rows_module = {
    .xConnect = connect_to, .xBestIndex = best_index, .xDisconnect = disconnect, .xOpen = open_cursor,
    .xClose = close_cursor, .xFilter = filter, .xNext = next, .xEof = at_end, .xColumn = column, .xRowid = rowid};

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
    if (number(db, "PRAGMA application_id") != SH_STORE_APPLICATION ||
        (version >= SH_STORE_VERSION && version <= SH_STORE_UNEVEN))
        return SQLITE_OK;
    *message = sqlite3_mprintf("store version %d, shears_sql reads versions %d to %d", version, SH_STORE_VERSION,
                               SH_STORE_UNEVEN);
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
    return code == SQLITE_OK ? sqlite3_create_module(db, "shears_rows", &rows_module, NULL) : code;
}
