/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions inside a SQLite: 14 bytes as in fuzz_block, then the blob as it is (how even) or the
 * contents of a sound frame (how odd). Each input goes through every function. */
#include <sqlite3.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/codec.h"

int sqlite3_extension_init(sqlite3 *db, char **message, const struct sqlite3_api_routines *api);

static const char *const queries[] = {
    "SELECT shears_row(?1, ?2, ?3, ?4, ?5, ?3 + 1)", "SELECT shears_row_json(?1, ?2, ?3, ?4, ?5, ?3 + ?4 - 1)",
    "SELECT shears_score(?1, ?2, ?3, ?4, ?5, ?3, 0)", "SELECT shears_residual(?1, ?2, ?3, ?4, ?5, ?3)",
    "SELECT sum(q * score + key) FROM shears_rows(?1, ?2, ?3, ?4, ?5)",
    "SELECT sum(score), max(its_window) FROM shears_rows(?1, ?2, ?3, ?4, ?5) WHERE q = ?3 + 2",
    "SELECT shears_vector(?1, ?2, ?4, 0)", "SELECT shears_vector_json(?1, ?2, ?4, ?4 - 1)",
    "SELECT shears_stats_json(?1)"};

enum { QUERIES = sizeof queries / sizeof *queries };

static sqlite3_stmt *prepared[QUERIES];

static void prepare(void)
{
    sqlite3 *db;
    if (sqlite3_auto_extension((void (*)(void))sqlite3_extension_init) || sqlite3_open(":memory:", &db))
        abort();
    for (int i = 0; i < QUERIES; i++)
        if (sqlite3_prepare_v2(db, queries[i], -1, &prepared[i], NULL))
            abort();
}

static void ask(sqlite3_stmt *q, const struct sh_block *b)
{
    sqlite3_bind_blob64(q, 1, b->blob, b->bytes, SQLITE_STATIC);
    sqlite3_bind_int(q, 2, b->codec);
    sqlite3_bind_int(q, 3, b->first_row);
    sqlite3_bind_int(q, 4, b->n_rows);
    sqlite3_bind_int(q, 5, b->window);
    fuzz_accepted += sqlite3_step(q) == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL;
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_block b;
    unsigned char *frame = NULL;
    int how = fuzz_block(&data, &size, &b);
    if (how < 0)
        return 0;
    if (!prepared[0])
        prepare();
    if (how & 1)
        b.bytes = sh_codec_bytes(data, size, SH_BYTES_NOISE, &frame);
    else
        *(const void **)&b.blob = data, b.bytes = size;
    if (frame)
        b.blob = frame;
    for (int i = 0; i < QUERIES; i++)
        ask(prepared[i], &b);
    free(frame);
    return 0;
}
