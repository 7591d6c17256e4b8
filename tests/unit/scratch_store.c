/* SPDX-License-Identifier: Apache-2.0 */
/* See scratch_store.h. */
#include "tests/unit/scratch_store.h"

#include <CUnit/CUnit.h>
#include <sqlite3.h>
#include <stddef.h>

double ask_store(const char *path, const char *sql)
{
    sqlite3 *c;
    sqlite3_stmt *q = NULL;
    CU_ASSERT_FATAL(sqlite3_open_v2(path, &c, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    CU_ASSERT_FATAL(sqlite3_prepare_v2(c, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW);
    double x = sqlite3_column_double(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(c);
    return x;
}
