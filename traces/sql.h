/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of shears_sql.so (sql_extension.c). They call SQLite only through the functions that it passes to a
 * module that it loads. */
#ifndef SH_TRACES_SQL_H
#define SH_TRACES_SQL_H

#include "traces/codec.h"

struct sqlite3;
struct sqlite3_value;

/* A whole number; one out of the range of int becomes a value that every check rejects. */
int sh_sql_int(struct sqlite3_value *v);

/* The block that the arguments blob, codec, first_row, n_rows, window describe. The blob remains SQLite's. */
struct sh_block sh_sql_block(struct sqlite3_value **arg);

/* shears_rows(blob, codec, first_row, n_rows, window): a table of q, key, score. Returns an SQLite result code. */
int sh_sql_rows_table(struct sqlite3 *db);

/* The statistics of a head_stats blob as JSON, to be freed; NULL: it is damaged. */
char *sh_sql_stats(const void *blob, size_t bytes, struct sh_err *e);

#endif
