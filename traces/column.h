/* SPDX-License-Identifier: Apache-2.0 */
/* What the columns of a row hold, checked. SQLite keeps a value of any kind in any column, and a file may have made its
 * tables itself: a text in the place of a blob, NULL in that of a name, 2^40 in that of a row. Every value that a
 * store gives comes through here. The first that is not what it must be is told, with the file, the table, the column,
 * and the row where it has a number; the values after it are 0 and "", so that a whole row can be taken before `bad`
 * is looked at. */
#ifndef SH_TRACES_COLUMN_H
#define SH_TRACES_COLUMN_H

#include "traces/db.h"

/* Numbers of runs and sequences: a sum of one and of a number of sequences is an int. */
enum { SH_MOST_ID = 1 << 30 };

struct sh_columns {
    struct sh_store *s;
    sqlite3_stmt *q;                    /* stands on a row                                        */
    const char *table;                  /* for the message                                        */
    struct sh_err *e;
    long long row;                      /* the same: its id, set by who knows it; -1: not known    */
    int bad;                            /* -1: e says why                                         */
};

/* Has the store a table of that name, which stores from before have not, or which is made when it is needed? 1, 0, or
 * -1. */
int sh_table_is_there(struct sh_store *s, const char *table, const char *doing, struct sh_err *e);

/* The row on which q stands. */
struct sh_columns sh_columns_of(struct sh_store *s, sqlite3_stmt *q, const char *table, struct sh_err *e);

/* A whole number from least to most; sh_column_int_or takes NULL for `null`. */
int sh_column_int(struct sh_columns *c, int column, int least, int most);
int sh_column_int_or(struct sh_columns *c, int column, int least, int most, int null);
long long sh_column_long(struct sh_columns *c, int column);

/* A number; sh_column_real_or takes NULL for NaN. */
double sh_column_real(struct sh_columns *c, int column);
double sh_column_real_or_nan(struct sh_columns *c, int column);

/* UTF-8 that ends at its NUL. Valid until the next step. */
const char *sh_column_text(struct sh_columns *c, int column);

/* Bytes; "" when there are none. Valid until the next step. */
const void *sh_column_blob(struct sh_columns *c, int column, size_t *bytes);

/* Are all columns of those kinds? i int, l long long, r double, t text, b blob; I, R: or NULL. 0, or -1. */
int sh_columns_are(struct sh_columns *c, const char *kinds);

#endif
