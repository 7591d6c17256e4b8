/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a query, and checked access to their columns. SQLite keeps a value of any kind in any column, and the
 * file may have made its tables itself: text in place of a blob, NULL in place of a name, 2^40 in place of a row. Every
 * value read from a store passes through here. The first invalid one is reported with file, table, column, and row
 * number where known; values after it read as 0 and "", so a whole row can be read before `bad` is checked:
 *
 *     struct sh_columns c = sh_columns_of(s, sh_db_query(s, e, "SELECT …", …), "table", "reading it", e);
 *     while (sh_columns_next(&c))
 *         …
 *     return sh_columns_end(&c);
 */
#ifndef SH_TRACES_COLUMN_H
#define SH_TRACES_COLUMN_H

#include "traces/db.h"

/* Limit of the ids of runs and sequences: the sum of an id and a number of sequences fits an int. */
enum { SH_MOST_ID = 1 << 30 };

struct sh_columns {
    struct sh_store *s;
    sqlite3_stmt *q;                    /* positioned on a row                                    */
    const char *table, *doing;          /* words for messages                                     */
    struct sh_err *e;
    long long row;                      /* the row's id, for the message; -1: unknown */
    int bad;                            /* nonzero: e says why                                       */
};

/* Does the table exist? Older stores lack some tables, others are made on demand. 1, 0, or -1. */
int sh_table_is_there(struct sh_store *s, const char *table, const char *doing, struct sh_err *e);

/* The rows of q, which may be NULL: the query failed, and e says why. */
struct sh_columns sh_columns_of(struct sh_store *s, sqlite3_stmt *q, const char *table, const char *doing,
                                struct sh_err *e);

/* Step to the next row. 0: there is none, or `bad` is set: a caller that finds an error sets it, too, and goes on. */
int sh_columns_next(struct sh_columns *c);

/* Finalises the query. 0, or -1 when `bad` is set. */
int sh_columns_end(struct sh_columns *c);

/* One number, from least to SH_MOST_ID, of the first row of q, which is finalised. 0 when there is no row. */
int sh_one_number(struct sh_store *s, sqlite3_stmt *q, const char *table, int least, const char *doing,
                  struct sh_err *e);

/* A whole number from least to most; sh_column_int_or takes NULL for `null`. */
int sh_column_int(struct sh_columns *c, int column, int least, int most);
int sh_column_int_or(struct sh_columns *c, int column, int least, int most, int null);
long long sh_column_long(struct sh_columns *c, int column);

/* A number; sh_column_real_or takes NULL for NaN. */
double sh_column_real(struct sh_columns *c, int column);
double sh_column_real_or_nan(struct sh_columns *c, int column);

/* UTF-8, terminated by NUL. Valid until the next step. */
const char *sh_column_text(struct sh_columns *c, int column);

/* Bytes; "" when empty. Valid until the next step. */
const void *sh_column_blob(struct sh_columns *c, int column, size_t *bytes);

/* Do all columns have those kinds? i int, l long long, r double, t text, b blob; I, R: or NULL. 0, or -1. */
int sh_columns_are(struct sh_columns *c, const char *kinds);

#endif
