/* SPDX-License-Identifier: Apache-2.0 */
/* See sql.h: the table-valued function shears_rows. Its arguments are hidden columns, its rows the stored scores of
 * one block, decoded when the table is queried. A constraint q = N is answered without a scan. */
#include <sqlite3ext.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces/sql.h"

SQLITE_EXTENSION_INIT3

enum { COLUMN_Q, COLUMN_KEY, COLUMN_SCORE, COLUMN_ARGS, N_ARG = 5, ALL_ARGS = (1 << N_ARG) - 1 };

struct score {
    int q, key;
    float score;
};

struct cursor {
    struct sqlite3_vtab_cursor base;
    struct score *at;                   /* [n] */
    size_t n, cap, now;
    int only_q, is_full;                /* only_q: -1: all; is_full: out of memory      */
    sqlite3_value *arg[N_ARG];          /* the arguments, readable as hidden columns    */
};

static int connect_to(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    (void)aux, (void)argc, (void)argv, (void)message;
    int code = sqlite3_declare_vtab(db, "CREATE TABLE x(q INTEGER, key INTEGER, score REAL, its_blob HIDDEN,"
                                    " its_codec HIDDEN, its_first_row HIDDEN, its_n_rows HIDDEN, its_window HIDDEN)");
    if (code != SQLITE_OK)
        return code;
    *out = sqlite3_malloc(sizeof **out);
    if (!*out)
        return SQLITE_NOMEM;
    memset(*out, 0, sizeof **out);
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* idxNum: one bit per argument given, and one for q. */
static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    int place[N_ARG + 1] = {0}, given = 0, n = 0;
    (void)table;
    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;
        int arg = column == COLUMN_Q ? N_ARG : column - COLUMN_ARGS;
        if ((column != COLUMN_Q && column < COLUMN_ARGS) || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable) {
            if (arg < N_ARG)
                return SQLITE_CONSTRAINT;       /* not usable until all arguments are given */
            continue;
        }
        given |= 1 << arg;
        place[arg] = i + 1;
    }
    for (int arg = 0; arg <= N_ARG; arg++)
        if (place[arg]) {
            info->aConstraintUsage[place[arg] - 1].argvIndex = ++n;
            info->aConstraintUsage[place[arg] - 1].omit = arg < N_ARG;
        }
    info->idxNum = given;
    info->estimatedCost = given & 1 << N_ARG ? 1e3 : 1e5;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    struct cursor *c = calloc(1, sizeof *c);
    (void)table;
    if (!c)
        return SQLITE_NOMEM;
    *out = &c->base;
    return SQLITE_OK;
}

static void forget(struct cursor *c)
{
    for (int i = 0; i < N_ARG; i++)
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

static int take(void *to, const struct sh_row *r)
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
    for (int i = 0; i < N_ARG; i++)
        if (!(c->arg[i] = sqlite3_value_dup(arg[i])))
            return SQLITE_NOMEM;
    struct sh_block b = sh_sql_block(c->arg);
    c->only_q = given & 1 << N_ARG && sqlite3_value_type(arg[N_ARG]) == SQLITE_INTEGER ? sh_sql_int(arg[N_ARG]) : -1;
    if (sh_codec_rows_any(&b, take, c, &e)) {
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

int sh_sql_rows_table(sqlite3 *db)
{
    static const sqlite3_module module = {
        .xConnect = connect_to, .xBestIndex = best_index, .xDisconnect = disconnect, .xOpen = open_cursor,
        .xClose = close_cursor, .xFilter = filter, .xNext = next, .xEof = at_end, .xColumn = column, .xRowid = rowid};
    return sqlite3_create_module(db, "shears_rows", &module, NULL);
}
