/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of shears_sql.so (sql_extension.c). They call SQLite only through the functions that it passes to a
 * module that it loads. */
#ifndef SH_TRACES_SQL_H
#define SH_TRACES_SQL_H

#include <stddef.h>

#include "src/base/err.h"

struct sqlite3;

/* shears_rows(blob, codec, first_row, n_rows, window): a table of q, key, score. Returns an SQLite result code. */
int sh_sql_rows_table(struct sqlite3 *db);

/* The statistics of a head_stats blob as JSON, to be freed; NULL: it is damaged. */
char *sh_sql_stats(const void *blob, size_t bytes, struct sh_err *e);

#endif
