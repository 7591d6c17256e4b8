/* SPDX-License-Identifier: Apache-2.0 */
/* See column.h. */
#include "traces/column.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int sh_table_is_there(struct sh_store *s, const char *table, const char *doing, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", "t", table);
    return sh_one_number(s, q, "sqlite_schema", 1, doing, e);
}

struct sh_columns sh_columns_of(struct sh_store *s, sqlite3_stmt *q, const char *table, const char *doing,
                                struct sh_err *e)
{
    return (struct sh_columns){s, q, table, doing, e, -1, q ? 0 : -1};
}

int sh_columns_next(struct sh_columns *c)
{
    c->row = -1;
    int got = c->bad ? -1 : sh_db_step(c->s, c->q, c->doing, c->e);
    c->bad = got < 0 ? -1 : 0;
    return got == 1;
}

int sh_columns_end(struct sh_columns *c)
{
    sqlite3_finalize(c->q);
    return c->bad ? -1 : 0;
}

int sh_one_number(struct sh_store *s, sqlite3_stmt *q, const char *table, int least, const char *doing,
                  struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, q, table, doing, e);
    int n = sh_columns_next(&c) ? sh_column_int(&c, 0, least, SH_MOST_ID) : 0;
    return sh_columns_end(&c) ? -1 : n;
}

/* A short description of the value found. */
static void describe(struct sh_columns *c, int column, char *to, size_t size)
{
    int kind = sqlite3_column_type(c->q, column);
    if (kind == SQLITE_NULL)
        snprintf(to, size, "NULL");
    else if (kind == SQLITE_BLOB)
        snprintf(to, size, "a blob of %d bytes", sqlite3_column_bytes(c->q, column));
    else if (kind == SQLITE_TEXT)
        snprintf(to, size, "the text \"%.40s\"", (const char *)sqlite3_column_text(c->q, column));
    else
        snprintf(to, size, "%.40s", (const char *)sqlite3_column_text(c->q, column));
}

static void wrong(struct sh_columns *c, int column, const char *expected)
{
    char found[80], row[40] = "";
    if (c->bad)
        return;
    if (c->row >= 0)
        snprintf(row, sizeof row, ", row %lld", c->row);
    describe(c, column, found, sizeof found);
    c->bad = sh_fail(c->e, "%s: damaged: table %s%s: %s is %s, expected %s", c->s->path, c->table, row,
                     sqlite3_column_name(c->q, column), found, expected);
}

int sh_column_int(struct sh_columns *c, int column, int least, int most)
{
    char expected[64];
    int is_whole = sqlite3_column_type(c->q, column) == SQLITE_INTEGER;
    long long x = is_whole ? sqlite3_column_int64(c->q, column) : 0;
    if (is_whole && x >= least && x <= most)
        return c->bad ? 0 : (int)x;
    snprintf(expected, sizeof expected, "a whole number from %d to %d", least, most);
    wrong(c, column, expected);
    return 0;
}

int sh_column_int_or(struct sh_columns *c, int column, int least, int most, int null)
{
    return sqlite3_column_type(c->q, column) == SQLITE_NULL ? null : sh_column_int(c, column, least, most);
}

long long sh_column_long(struct sh_columns *c, int column)
{
    if (sqlite3_column_type(c->q, column) == SQLITE_INTEGER)
        return c->bad ? 0 : sqlite3_column_int64(c->q, column);
    wrong(c, column, "a whole number");
    return 0;
}

double sh_column_real(struct sh_columns *c, int column)
{
    int kind = sqlite3_column_type(c->q, column);
    if (kind == SQLITE_FLOAT || kind == SQLITE_INTEGER)
        return c->bad ? 0 : sqlite3_column_double(c->q, column);
    wrong(c, column, "a number");
    return 0;
}

double sh_column_real_or_nan(struct sh_columns *c, int column)
{
    return sqlite3_column_type(c->q, column) == SQLITE_NULL ? (double)NAN : sh_column_real(c, column);
}

const char *sh_column_text(struct sh_columns *c, int column)
{
    int is_text = sqlite3_column_type(c->q, column) == SQLITE_TEXT;
    const char *text = is_text ? (const char *)sqlite3_column_text(c->q, column) : NULL;
    size_t bytes = text ? (size_t)sqlite3_column_bytes(c->q, column) : 0;
    if (!text || strlen(text) != bytes)
        wrong(c, column, text ? "text without NUL" : "text");
    else if (!c->bad)
        c->bad = sh_untrusted_take(c->s, bytes, c->e);
    return c->bad ? "" : text;
}

const void *sh_column_blob(struct sh_columns *c, int column, size_t *bytes)
{
    const void *at = NULL;
    *bytes = 0;
    if (sqlite3_column_type(c->q, column) != SQLITE_BLOB)
        wrong(c, column, "a blob");
    if (!c->bad) {
        at = sqlite3_column_blob(c->q, column);         /* NULL where it is empty */
        *bytes = (size_t)sqlite3_column_bytes(c->q, column);
        c->bad = sh_untrusted_take(c->s, *bytes, c->e);
    }
    if (!c->bad && at)
        return at;
    *bytes = 0;
    return "";
}

int sh_columns_are(struct sh_columns *c, const char *kinds)
{
    size_t bytes;
    for (int i = 0; kinds[i]; i++)
        switch (kinds[i]) {
        case 'i': sh_column_int(c, i, INT_MIN, INT_MAX); break;
        case 'I': sh_column_int_or(c, i, INT_MIN, INT_MAX, 0); break;
        case 'l': sh_column_long(c, i); break;
        case 'r': sh_column_real(c, i); break;
        case 'R': sh_column_real_or_nan(c, i); break;
        case 't': sh_column_text(c, i); break;
        default: sh_column_blob(c, i, &bytes);
        }
    return c->bad;
}
