/* SPDX-License-Identifier: Apache-2.0 */
/* See scratch_store.h. */
#include "tests/unit/scratch_store.h"

#include <CUnit/CUnit.h>
#include <sqlite3.h>
#include <stddef.h>

const struct sh_trace_run small_run = {
    .model = {.name = "m", .family = "opt", .weights = "checkpoint", .fingerprint = 7, .n_layer = 4, .n_head = 2,
              .n_kv_head = 2, .d_head = 8, .d_model = 16, .n_vocab = 9, .max_pos = 64},
    .program = "p", .backend = "cpu", .device = "d", .dtype = "f32", .vectors = "", .statistics = "{}",
    .command = "c", .record = SH_RECORD_FULL, .codec = SH_CODEC_LOG8, .first_layer = 1, .last_layer = 3, .seed = -5};

static int32_t tokens[] = {3, 1, 4, 1, 5};
static char source_a[] = "a.txt:0", source_b[] = "b \xc3\xa4.txt:1";
const struct sh_trace_sequence small_sequences[2] = {
    {.source = source_a, .n_tokens = 5, .tokens = tokens}, {.source = source_b, .n_tokens = 2, .tokens = tokens + 1}};

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
