/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h: what is read. Columns are checked where they are used: a store may come from anywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/db.h"

enum { MOST_TOKENS = 1 << 22 };         /* of a sequence, as in codec.c */

static char *text(sqlite3_stmt *q, int column)
{
    const unsigned char *t = sqlite3_column_text(q, column);
    return xstrdup(t ? (const char *)t : "");
}

static int lookup(const char *const names[], const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int read_run(struct sh_store *s, sqlite3_stmt *q, struct sh_stored_run *r, struct sh_err *e)
{
    char *record = text(q, 13), *codec = text(q, 14);
    int which_record = lookup(sh_record_names, record), which_codec = lookup(sh_codec_names, codec);
    *r = (struct sh_stored_run){
        .id = sqlite3_column_int(q, 0), .model = text(q, 1), .family = text(q, 2), .weights = text(q, 3),
        .fingerprint = text(q, 4), .program = text(q, 5), .backend = text(q, 6), .device = text(q, 7),
        .dtype = text(q, 8), .vectors = text(q, 9), .statistics = text(q, 10), .command = text(q, 11),
        .started = text(q, 12), .record = (enum sh_record)which_record, .codec = (enum sh_codec)which_codec,
        .n_layer = sqlite3_column_int(q, 15), .n_head = sqlite3_column_int(q, 16),
        .n_kv_head = sqlite3_column_int(q, 17), .d_head = sqlite3_column_int(q, 18),
        .first_layer = sqlite3_column_int(q, 19), .last_layer = sqlite3_column_int(q, 20),
        .seconds = sqlite3_column_double(q, 21), .n_sequence = sqlite3_column_int(q, 22),
        .n_tokens = sqlite3_column_int64(q, 23), .n_done = sqlite3_column_int(q, 24),
        .weight_bits = sqlite3_column_int(q, 25), .orderless = sqlite3_column_int(q, 26) < 0};
    int bad = which_record < 0 || which_codec < 0 || r->n_layer < 1 || r->n_layer > 100000 || r->n_head < 1 ||
              r->n_head > 100000 ||
              r->n_kv_head < 1 || r->n_kv_head > r->n_head || r->d_head < 1 || r->d_head > 1000000 ||
              (long long)r->n_layer * r->n_head > 10000000 || r->first_layer < 0 ||
              r->last_layer < r->first_layer || r->last_layer >= r->n_layer;
    if (bad)
        sh_fail(e, "%s: run %d is damaged: record \"%s\", codec \"%s\", %d layers, %d heads, layers %d-%d", s->path,
                r->id, record, codec, r->n_layer, r->n_head, r->first_layer, r->last_layer);
    free(record);
    free(codec);
    return bad ? -1 : 0;
}

int sh_store_runs(struct sh_store *s, struct sh_stored_run **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *runs = NULL;
    int count = 0, got;
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT run.id, name, family, weights, fingerprint, program, backend, device, dtype, vectors, statistics,"
        " command, started, record, codec, n_layer, n_head, n_kv_head, d_head, first_layer, last_layer, seconds,"
        " (SELECT count(*) FROM sequence WHERE run = run.id),"
        " (SELECT coalesce(sum(n_tokens), 0) FROM sequence WHERE run = run.id),"
        " (SELECT count(*) FROM done JOIN sequence ON sequence.id = done.sequence WHERE sequence.run = run.id),"
        " weight_bits,"
        " (SELECT window FROM done JOIN sequence ON sequence.id = done.sequence JOIN scores"
        "  ON scores.sequence = done.sequence AND scores.layer = done.layer WHERE sequence.run = run.id LIMIT 1)"
        " FROM run JOIN model ON model.id = run.model ORDER BY run.id", "");
    while ((got = q ? sh_db_step(s, q, "reading the runs", e) : -1) == 1) {
        runs = xreallocarray(runs, (size_t)count + 1, sizeof *runs);
        if (read_run(s, q, &runs[count++], e)) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    if (got) {
        sh_stored_runs_free(runs, count);
        return -1;
    }
    *out = runs;
    *n = count;
    return 0;
}

long long sh_store_scores(struct sh_store *s, int run, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT first_row, n_rows, window FROM scores JOIN sequence"
                                  " ON sequence.id = scores.sequence WHERE sequence.run = ?", "i", run);
    long long sum = 0;
    int got;
    while ((got = q ? sh_db_step(s, q, "counting scores", e) : -1) == 1) {
        int first = sqlite3_column_int(q, 0), n = sqlite3_column_int(q, 1), window = sqlite3_column_int(q, 2);
        if (first < 0 || n < 0 || first > MOST_TOKENS || n > MOST_TOKENS || window < -MOST_TOKENS)
            got = sh_fail(e, "%s: run %d is damaged: rows %d + %d with window %d", s->path, run, first, n, window);
        if (got < 0)
            break;
        sum += (long long)sh_rows_scores(first, n, window);
    }
    sqlite3_finalize(q);
    return got < 0 ? -1 : sum;
}

long long sh_store_blob_bytes(struct sh_store *s, int run, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT (SELECT coalesce(sum(length(blob)), 0) FROM scores JOIN sequence ON sequence.id = scores.sequence"
        "  WHERE sequence.run = ?1) +"
        " (SELECT coalesce(sum(length(blob)), 0) FROM head_stats JOIN sequence ON sequence.id = head_stats.sequence"
        "  WHERE sequence.run = ?1)", "i", run);
    long long bytes = q && sh_db_step(s, q, "measuring a run", e) == 1 ? sqlite3_column_int64(q, 0) : -1;
    sqlite3_finalize(q);
    return bytes;
}

void sh_stored_runs_free(struct sh_stored_run *r, int n)
{
    for (int i = 0; r && i < n; i++) {
        char *all[] = {r[i].model, r[i].family, r[i].weights, r[i].fingerprint, r[i].program, r[i].backend,
                       r[i].device, r[i].dtype, r[i].vectors, r[i].statistics, r[i].command, r[i].started};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            free(all[k]);
    }
    free(r);
}

int sh_store_sequences(struct sh_store *s, int run, struct sh_stored_sequence **out, int *n, struct sh_err *e)
{
    struct sh_stored_sequence *list = NULL;
    int count = 0, got;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT id, run, n_tokens, source FROM sequence WHERE ?1 = 0 OR run = ?1"
                                  " ORDER BY id", "i", run);
    while ((got = q ? sh_db_step(s, q, "reading the sequences", e) : -1) == 1) {
        list = xreallocarray(list, (size_t)count + 1, sizeof *list);
        list[count++] = (struct sh_stored_sequence){.id = sqlite3_column_int(q, 0), .run = sqlite3_column_int(q, 1),
                                                    .n_tokens = sqlite3_column_int(q, 2), .source = text(q, 3)};
        if (list[count - 1].n_tokens < 1 || list[count - 1].n_tokens > MOST_TOKENS) {
            got = sh_fail(e, "%s: sequence %d is damaged: %d tokens", s->path, list[count - 1].id,
                          list[count - 1].n_tokens);
            break;
        }
    }
    sqlite3_finalize(q);
    if (got) {
        sh_stored_sequences_free(list, count);
        return -1;
    }
    *out = list;
    *n = count;
    return 0;
}

void sh_stored_sequences_free(struct sh_stored_sequence *q, int n)
{
    for (int i = 0; q && i < n; i++)
        free(q[i].source);
    free(q);
}

int sh_store_tokens(struct sh_store *s, int sequence, int32_t **tokens, int *n, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT n_tokens, tokens FROM sequence WHERE id = ?", "i", sequence);
    int got = q ? sh_db_step(s, q, "reading tokens", e) : -1;
    if (got == 0)
        sh_fail(e, "%s: has no sequence %d", s->path, sequence);
    if (got == 1) {
        int count = sqlite3_column_int(q, 0), bytes = sqlite3_column_bytes(q, 1);
        if (count < 1 || bytes != 4 * (long long)count) {
            got = sh_fail(e, "%s: sequence %d is damaged: %d tokens in %d bytes", s->path, sequence, count, bytes);
        } else {
            *tokens = xmalloc((size_t)bytes);
            memcpy(*tokens, sqlite3_column_blob(q, 1), (size_t)bytes);
            *n = count;
        }
    }
    sqlite3_finalize(q);
    return got == 1 ? 0 : -1;
}

static const char *const block_query[] = {
    [SH_BLOCK_SCORES] = "SELECT head, first_row, n_rows, window, codec, blob FROM scores WHERE sequence = ?1"
                        " AND layer = ?2 AND (?3 < 0 OR head = ?3) ORDER BY head, first_row",
    [SH_BLOCK_VECTORS] = "SELECT head, 0, 0, 0, codec, blob, kind FROM vectors WHERE sequence = ?1 AND layer = ?2"
                         " AND (?3 < 0 OR head = ?3) ORDER BY kind, head",
    [SH_BLOCK_STATS] = "SELECT head, 0, 0, 0, 0, blob FROM head_stats WHERE sequence = ?1 AND layer = ?2"
                       " AND (?3 < 0 OR head = ?3) ORDER BY head",
};

int sh_store_blocks(struct sh_store *s, int kind, int sequence, int layer, int head, sh_block_fn fn, void *to,
                    struct sh_err *e)
{
    int got;
    sqlite3_stmt *q = sh_db_query(s, e, block_query[kind], "iii", sequence, layer, head);
    while ((got = q ? sh_db_step(s, q, "reading a layer", e) : -1) == 1) {
        struct sh_block b = {.head = sqlite3_column_int(q, 0), .first_row = sqlite3_column_int(q, 1),
                             .n_rows = sqlite3_column_int(q, 2), .window = sqlite3_column_int(q, 3),
                             .codec = sqlite3_column_int(q, 4)};
        b.kind = kind;
        if (kind == SH_BLOCK_VECTORS) {
            const unsigned char *name = sqlite3_column_text(q, 6);
            b.vector = name ? (char)name[0] : '?';
        }
        const void *blob = sqlite3_column_blob(q, 5);
        *(const void **)&b.blob = blob;                 /* read only during the callback */
        b.bytes = (size_t)sqlite3_column_bytes(q, 5);
        if (fn(to, &b, e)) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    return got;
}

int sh_store_keep(void *batch, const struct sh_block *b, struct sh_err *e)
{
    (void)e;
    struct sh_block copy = *b;
    copy.blob = xmalloc(b->bytes);
    if (b->bytes)                       /* an empty blob comes as NULL */
        memcpy(copy.blob, b->blob, b->bytes);
    sh_batch_add(batch, copy);
    return 0;
}

int sh_store_is_done(struct sh_store *s, int sequence, int layer, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM done WHERE sequence = ? AND layer = ?", "ii", sequence, layer);
    int done = q ? sh_db_step(s, q, "looking for a finished layer", e) : -1;
    sqlite3_finalize(q);
    return done;
}

int sh_store_read_results(struct sh_store *s, const char *command, sh_result_fn fn, void *to, struct sh_err *e)
{
    int got;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT settings, metric, ifnull(layer, -1), ifnull(head, -1), value"
                                  " FROM result WHERE command = ? ORDER BY settings, id", "t", command);
    while ((got = q ? sh_db_step(s, q, "reading results", e) : -1) == 1) {
        struct sh_stored_result r = {.settings = (const char *)sqlite3_column_text(q, 0),
                                     .metric = (const char *)sqlite3_column_text(q, 1),
                                     .layer = sqlite3_column_int(q, 2), .head = sqlite3_column_int(q, 3),
                                     .value = sqlite3_column_type(q, 4) == SQLITE_NULL ? (double)NAN
                                                                                       : sqlite3_column_double(q, 4)};
        if (r.settings && r.metric && fn(to, &r, e)) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    return got;
}

int sh_store_read_typed(struct sh_store *s, const char *command, sh_line_fn fn, void *to, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'typed'", "");
    int got = q ? sh_db_step(s, q, "reading results", e) : -1;
    sqlite3_finalize(q);
    if (got < 1)
        return got;
    q = sh_db_query(s, e, "SELECT DISTINCT line FROM typed WHERE command = ?", "t", command);
    while ((got = q ? sh_db_step(s, q, "reading results", e) : -1) == 1)
        if (sqlite3_column_text(q, 0))
            fn(to, (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    return got;
}
