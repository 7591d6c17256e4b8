/* SPDX-License-Identifier: Apache-2.0 */
/* See digest.h. */
#include "traces/digest.h"

#include <stdlib.h>

#include "traces/codec.h"
#include "traces/column.h"
#include "traces/db.h"

__extension__ typedef unsigned __int128 wide;

static const char doing[] = "hashing its content";

/* Results measured by a clock: they differ between two runs of the same work. All others are content, whatever their
 * unit: the seconds and rates of a simulation follow from its settings. */
#define NOT_BY_CLOCK "(command, metric) NOT IN (VALUES ('eval', 'tokens_per_s'), ('task', 'tokens_per_s'))"

static wide begin(const char *kind)
{
    wide h = (wide)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;
    for (; *kind; kind++)
        h = (h ^ (unsigned char)*kind) * ((wide)1 << 88 | 0x13b);
    return h;
}

static void bytes(wide *h, const void *at, size_t n)
{
    const unsigned char *b = at;
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ b[i]) * ((wide)1 << 88 | 0x13b);
}

static void whole(wide *h, long long value)
{
    bytes(h, &value, sizeof value);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Raw FNV hashes would cancel in a sum: neighbouring inputs differ in few bits. */
static wide end(wide h)
{
    uint64_t high = mix((uint64_t)(h >> 64)), low = mix((uint64_t)h ^ high);
    return (wide)(high ^ mix(low)) << 64 | low;
}

static struct sh_digest digest(wide h)
{
    return (struct sh_digest){(uint64_t)(h >> 64), (uint64_t)h};
}

/* The columns [first, n) of a row, with type and length. */
static void columns(wide *h, sqlite3_stmt *q, int first)
{
    for (int i = first; i < sqlite3_column_count(q); i++) {
        int type = sqlite3_column_type(q, i);
        whole(h, type);
        if (type == SQLITE_INTEGER) {
            whole(h, sqlite3_column_int64(q, i));
        } else if (type == SQLITE_FLOAT) {
            double value = sqlite3_column_double(q, i);
            bytes(h, &value, sizeof value);
        } else if (type != SQLITE_NULL) {
            int n = sqlite3_column_bytes(q, i);         /* before column_blob: it may move the blob */
            const void *at = sqlite3_column_blob(q, i);
            whole(h, n);
            bytes(h, at, (size_t)n);
        }
    }
}

/* ---- one sequence ---- */

struct blocks {
    wide sum, parent;
    int layer;
    long long n;
};

static int add_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct blocks *s = to;
    unsigned char *plain;
    size_t n;
    if (b->kind == SH_BLOCK_SCORES ? sh_codec_plain(b, &plain, &n, e)
                                   : sh_codec_unbytes(b->blob, b->bytes, (size_t)1 << 32, &plain, &n, e))
        return sh_err_prefix(e, "layer %d, head %d, row %d", s->layer, b->head, b->first_row);
    wide h = begin("block");
    const long long what[] = {b->kind, s->layer, b->head, b->first_row, b->n_rows, b->window, b->codec,
                              b->kind == SH_BLOCK_VECTORS ? b->vector : 0, (long long)n};
    bytes(&h, &s->parent, sizeof s->parent);
    bytes(&h, what, sizeof what);
    bytes(&h, plain, n);
    free(plain);
    s->sum += end(h);
    s->n++;
    return 0;
}

static int add_layer(struct blocks *to, struct sh_store *s, int sequence, int layer, struct sh_err *e)
{
    to->layer = layer;
    for (int kind = SH_BLOCK_SCORES; kind <= SH_BLOCK_STATS; kind++)
        if (sh_store_blocks(s, kind, sequence, layer, -1, add_block, to, e))
            return sh_err_prefix(e, "%s: sequence %d", s->path, sequence);
    return 0;
}

int sh_digest_layer(struct sh_store *s, int sequence, int layer, struct sh_digest *out, struct sh_err *e)
{
    struct blocks b = {0};
    if (add_layer(&b, s, sequence, layer, e))
        return -1;
    *out = digest(b.sum);
    return 0;
}

/* The finished layers of a sequence. */
static int add_sequence(wide *sum, struct sh_store *s, int sequence, wide own, struct sh_digest_counts *n,
                        struct sh_err *e)
{
    struct blocks b = {.parent = own};
    int layer = -1;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT layer FROM done WHERE sequence = ? ORDER BY layer", "i", sequence);
    struct sh_columns c = sh_columns_of(s, q, "done", doing, e);
    while (sh_columns_next(&c)) {
        wide h = begin("done");
        layer = sh_column_int(&c, 0, layer + 1, SH_MOST_ID);
        bytes(&h, &own, sizeof own);
        columns(&h, q, 0);
        *sum += end(h);
        n->layers++;
        c.bad = c.bad || add_layer(&b, s, sequence, layer, e);
    }
    *sum += b.sum;
    n->blocks += b.n;
    return sh_columns_end(&c);
}

/* ---- the store ---- */

static int add_sequences(wide *sum, struct sh_store *s, int run, wide own, struct sh_digest_counts *n,
                         struct sh_err *e)
{
    int place = 0, id = -1;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT id, source, n_tokens, tokens FROM sequence WHERE run = ? ORDER BY id",
                                  "i", run);
    struct sh_columns c = sh_columns_of(s, q, "sequence", doing, e);
    while (sh_columns_next(&c)) {
        wide h = begin("sequence");
        id = sh_column_int(&c, 0, id + 1, SH_MOST_ID);
        bytes(&h, &own, sizeof own);
        whole(&h, place++);
        columns(&h, q, 1);
        *sum += end(h);
        n->sequences++;
        c.bad = c.bad || add_sequence(sum, s, id, end(h), n, e);
    }
    return sh_columns_end(&c);
}

static int add_runs(wide *sum, struct sh_store *s, struct sh_digest_counts *n, struct sh_err *e)
{
    int id = 0;
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT run.id, name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model, n_vocab,"
        " max_pos, key, dtype, weight_bits, record, codec, vectors, statistics, first_layer, last_layer"
        " FROM run JOIN model ON model.id = run.model ORDER BY run.id", "");
    struct sh_columns c = sh_columns_of(s, q, "run", doing, e);
    while (sh_columns_next(&c)) {
        wide h = begin("run");
        id = sh_column_int(&c, 0, id + 1, SH_MOST_ID);
        columns(&h, q, 1);
        n->runs++;
        c.bad = c.bad || add_sequences(sum, s, id, end(h), n, e);
    }
    return sh_columns_end(&c);
}

/* Rows hashed column by column, as stored. */
static int add_rows(wide *sum, struct sh_store *s, const char *kind, sqlite3_stmt *q, long long *n, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, q, kind, doing, e);
    while (sh_columns_next(&c)) {
        wide h = begin(kind);
        columns(&h, q, 0);
        *sum += end(h);
        ++*n;
    }
    return sh_columns_end(&c);
}

int sh_digest_results(struct sh_store *s, const char *command, const char *settings, struct sh_digest *out, int *n,
                      struct sh_err *e)
{
    wide sum = 0;
    long long timeless = 0;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT count(*) FROM result WHERE command = ? AND settings = ?", "tt", command,
                                  settings);
    *n = sh_one_number(s, q, "result", 0, doing, e);
    if (*n < 0)
        return -1;
    q = sh_db_query(s, e, "SELECT metric, layer, head, value FROM result WHERE command = ? AND settings = ? AND "
                    NOT_BY_CLOCK, "tt", command, settings);
    if (add_rows(&sum, s, "result", q, &timeless, e))
        return -1;
    *out = digest(sum);
    return 0;
}

int sh_digest_store(struct sh_store *s, struct sh_digest *out, struct sh_digest_counts *n, struct sh_err *e)
{
    wide sum = 0;
    *n = (struct sh_digest_counts){0};
    if (add_runs(&sum, s, n, e))
        return -1;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT command, settings, metric, layer, head, value FROM result"
                                  " WHERE " NOT_BY_CLOCK, "");
    if (add_rows(&sum, s, "result", q, &n->results, e))
        return -1;
    q = sh_db_query(s, e, "SELECT model.name, weights, fingerprint, plan.name, json FROM plan"
                    " JOIN model ON model.id = plan.model", "");
    if (add_rows(&sum, s, "plan", q, &n->plans, e))
        return -1;
    *out = digest(end(sum));
    return 0;
}
