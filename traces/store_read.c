/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h: the reading functions. column.h checks kinds and ranges; the consistency of several columns is checked
 * here and where they are used. A store may come from anywhere: not even the order of rows is trusted. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/db.h"

enum { MOST_TOKENS = 1 << 22,           /* of a sequence, as in codec.c */
       MOST_LAYERS = 100000, MOST_HEADS = 100000, MOST_LAYERS_HEADS = 10000000, MOST_WIDTH = 1000000 };

static char *text(struct sh_columns *c, int column)
{
    return xstrdup(sh_column_text(c, column));
}

static int lookup(const char *const names[], const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

/* before: the id of the preceding run, 0 for the first. */
static void read_run(struct sh_columns *c, int before, struct sh_stored_run *r)
{
    c->row = sh_column_int(c, 0, before + 1, SH_MOST_ID);
    char *record = text(c, 13), *codec = text(c, 14);
    int which_record = lookup(sh_record_names, record), which_codec = lookup(sh_codec_names, codec);
    *r = (struct sh_stored_run){
        .id = (int)c->row, .model = text(c, 1), .family = text(c, 2), .weights = text(c, 3), .fingerprint = text(c, 4),
        .program = text(c, 5), .backend = text(c, 6), .device = text(c, 7), .dtype = text(c, 8), .vectors = text(c, 9),
        .statistics = text(c, 10), .command = text(c, 11), .started = text(c, 12),
        .record = (enum sh_record)which_record, .codec = (enum sh_codec)which_codec,
        .n_layer = sh_column_int(c, 15, 1, MOST_LAYERS), .n_head = sh_column_int(c, 16, 1, MOST_HEADS),
        .n_kv_head = sh_column_int(c, 17, 1, MOST_HEADS), .d_head = sh_column_int(c, 18, 1, MOST_WIDTH),
        .first_layer = sh_column_int(c, 19, 0, MOST_LAYERS), .last_layer = sh_column_int(c, 20, 0, MOST_LAYERS),
        .seconds = sh_column_real(c, 21), .n_sequence = sh_column_int(c, 22, 0, SH_MOST_ID),
        .n_tokens = sh_column_long(c, 23), .n_done = sh_column_int(c, 24, 0, INT_MAX),
        .weight_bits = sh_column_int(c, 25, 0, 64),
        .orderless = sh_column_int_or(c, 26, INT_MIN, INT_MAX, 0) < 0};
    if (!c->bad && (which_record < 0 || which_codec < 0 || r->n_kv_head > r->n_head ||
                    (long long)r->n_layer * r->n_head > MOST_LAYERS_HEADS || r->last_layer < r->first_layer ||
                    r->last_layer >= r->n_layer))
        c->bad = sh_fail(c->e, "%s: run %d is damaged: record \"%.40s\", codec \"%.40s\", %d layers, %d heads, %d KV "
                         "heads, layers %d-%d", c->s->path, r->id, record, codec, r->n_layer, r->n_head, r->n_kv_head,
                         r->first_layer, r->last_layer);
    free(record);
    free(codec);
}

int sh_store_runs(struct sh_store *s, struct sh_stored_run **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *runs = NULL;
    int count = 0;
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT run.id, name, family, weights, fingerprint, program, backend, device, dtype, vectors, statistics,"
        " command, started, record, codec, n_layer, n_head, n_kv_head, d_head, first_layer, last_layer, seconds,"
        " (SELECT count(*) FROM sequence WHERE run = run.id),"
        " (SELECT coalesce(sum(n_tokens), 0) FROM sequence WHERE run = run.id) AS n_tokens,"
        " (SELECT count(*) FROM done JOIN sequence ON sequence.id = done.sequence WHERE sequence.run = run.id),"
        " weight_bits,"
        " (SELECT window FROM done JOIN sequence ON sequence.id = done.sequence JOIN scores"
        "  ON scores.sequence = done.sequence AND scores.layer = done.layer WHERE sequence.run = run.id LIMIT 1)"
        " AS window FROM run JOIN model ON model.id = run.model ORDER BY run.id", "");
    struct sh_columns c = sh_columns_of(s, q, "run", "reading the runs", e);
    while (sh_columns_next(&c)) {
        runs = xreallocarray(runs, (size_t)count + 1, sizeof *runs);
        read_run(&c, count ? runs[count - 1].id : 0, &runs[count]);
        count++;
    }
    if (sh_columns_end(&c)) {
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
    struct sh_columns c = sh_columns_of(s, q, "scores", "counting scores", e);
    long long sum = 0;
    while (sh_columns_next(&c)) {
        int first = sh_column_int(&c, 0, 0, MOST_TOKENS), n = sh_column_int(&c, 1, 0, MOST_TOKENS),
            window = sh_column_int(&c, 2, -MOST_TOKENS, INT_MAX);
        sum += c.bad ? 0 : (long long)sh_rows_scores(first, n, window);
    }
    return sh_columns_end(&c) ? -1 : sum;
}

long long sh_store_blob_bytes(struct sh_store *s, int run, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT (SELECT coalesce(sum(length(blob)), 0) FROM scores JOIN sequence ON sequence.id = scores.sequence"
        "  WHERE sequence.run = ?1) +"
        " (SELECT coalesce(sum(length(blob)), 0) FROM head_stats JOIN sequence ON sequence.id = head_stats.sequence"
        "  WHERE sequence.run = ?1) AS bytes", "i", run);
    struct sh_columns c = sh_columns_of(s, q, "scores", "measuring a run", e);
    long long bytes = sh_columns_next(&c) ? sh_column_long(&c, 0) : -1;
    return sh_columns_end(&c) ? -1 : bytes;
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
    int count = 0;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT id, run, n_tokens, source FROM sequence WHERE ?1 = 0 OR run = ?1"
                                  " ORDER BY id", "i", run);
    struct sh_columns c = sh_columns_of(s, q, "sequence", "reading the sequences", e);
    while (sh_columns_next(&c)) {
        c.row = sh_column_int(&c, 0, count ? list[count - 1].id + 1 : 0, SH_MOST_ID);
        list = xreallocarray(list, (size_t)count + 1, sizeof *list);
        list[count++] = (struct sh_stored_sequence){
            .id = (int)c.row, .run = sh_column_int(&c, 1, 1, SH_MOST_ID),
            .n_tokens = sh_column_int(&c, 2, 1, MOST_TOKENS), .source = text(&c, 3)};
    }
    if (sh_columns_end(&c)) {
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
    struct sh_columns c = sh_columns_of(s, q, "sequence", "reading tokens", e);
    if (sh_columns_next(&c)) {
        size_t bytes;
        c.row = sequence;
        int count = sh_column_int(&c, 0, 1, MOST_TOKENS);
        const void *blob = sh_column_blob(&c, 1, &bytes);
        if (!c.bad && bytes != 4 * (size_t)count)
            c.bad = sh_fail(e, "%s: sequence %d is damaged: %d tokens in %zu bytes", s->path, sequence, count, bytes);
        if (!c.bad) {
            *tokens = xmalloc(bytes);
            memcpy(*tokens, blob, bytes);
            *n = count;
        }
    } else if (!c.bad) {
        c.bad = sh_fail(e, "%s: no sequence %d", s->path, sequence);
    }
    return sh_columns_end(&c);
}

static const struct { const char *table, *query; } of_kind[] = {
    [SH_BLOCK_SCORES] = {"scores", "SELECT head, first_row, n_rows, window, codec, blob FROM scores WHERE sequence = ?1"
                         " AND layer = ?2 AND (?3 < 0 OR head = ?3) ORDER BY head, first_row"},
    [SH_BLOCK_VECTORS] = {"vectors", "SELECT head, 0, 0, 0, codec, blob, kind FROM vectors WHERE sequence = ?1"
                          " AND layer = ?2 AND (?3 < 0 OR head = ?3) ORDER BY kind, head"},
    [SH_BLOCK_STATS] = {"head_stats", "SELECT head, 0, 0, 0, 0, blob FROM head_stats WHERE sequence = ?1"
                        " AND layer = ?2 AND (?3 < 0 OR head = ?3) ORDER BY head"},
};

/* The blob remains SQLite's, read-only. */
static void read_block(struct sh_columns *c, int kind, struct sh_block *b)
{
    *b = (struct sh_block){.kind = kind,
                           .head = sh_column_int(c, 0, INT_MIN, INT_MAX),
                           .first_row = sh_column_int(c, 1, INT_MIN, INT_MAX),
                           .n_rows = sh_column_int(c, 2, INT_MIN, INT_MAX),
                           .window = sh_column_int(c, 3, INT_MIN, INT_MAX),
                           .codec = sh_column_int(c, 4, INT_MIN, INT_MAX)};
    if (kind == SH_BLOCK_VECTORS) {
        const char *name = sh_column_text(c, 6);
        if (!c->bad && strlen(name) != 1)
            c->bad = sh_fail(c->e, "%s: damaged: vectors of kind \"%.40s\", expected q, k or v", c->s->path, name);
        b->vector = name[0];
    }
    *(const void **)&b->blob = sh_column_blob(c, 5, &b->bytes);
}

/* Readers that take rows or heads in turn rely on the order. */
static int comes_after(const struct sh_block *b, const struct sh_block *before)
{
    return b->vector != before->vector ? b->vector > before->vector
           : b->head != before->head   ? b->head > before->head
                                       : b->first_row > before->first_row;
}

int sh_store_blocks(struct sh_store *s, int kind, int sequence, int layer, int head, sh_block_fn fn, void *to,
                    struct sh_err *e)
{
    struct sh_block b, before;
    int n = 0;
    sqlite3_stmt *q = sh_db_query(s, e, of_kind[kind].query, "iii", sequence, layer, head);
    struct sh_columns c = sh_columns_of(s, q, of_kind[kind].table, "reading a layer", e);
    while (sh_columns_next(&c)) {
        read_block(&c, kind, &b);
        if (!c.bad && n++ && !comes_after(&b, &before))
            c.bad = sh_fail(e, "%s: damaged: table %s: head %d, row %d comes after head %d, row %d", s->path, c.table,
                            b.head, b.first_row, before.head, before.first_row);
        before = b;
        c.bad = c.bad || fn(to, &b, e);
    }
    return sh_columns_end(&c);
}

int sh_store_keep(void *batch, const struct sh_block *b, struct sh_err *e)
{
    (void)e;
    struct sh_block copy = *b;
    copy.blob = xmalloc(b->bytes);
    memcpy(copy.blob, b->blob, b->bytes);
    sh_batch_add(batch, copy);
    return 0;
}

int sh_store_is_done(struct sh_store *s, int sequence, int layer, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM done WHERE sequence = ? AND layer = ?", "ii", sequence, layer);
    return sh_one_number(s, q, "done", 1, "looking for a finished layer", e);
}

int sh_store_layer(struct sh_store *s, int sequence, int layer, struct sh_err *e)
{
    int done = sh_store_is_done(s, sequence, layer, e);
    if (done <= 0)
        return done;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM vectors WHERE sequence = ? AND layer = ? AND kind = 'n'", "ii",
                                  sequence, layer);
    int silent = sh_one_number(s, q, "vectors", 1, "looking for a layer without attention", e);
    return silent < 0 ? -1 : silent ? SH_LAYER_SILENT : SH_LAYER_DONE;
}

int sh_store_heads(struct sh_store *s, int sequence, int layer, const struct sh_stored_run *run,
                   struct sh_layer_heads *out, struct sh_err *e)
{
    static const char own[] = "SELECT head, kind = 'a' FROM vectors WHERE sequence = ? AND layer = ? AND kind IN "
                              "('a', 'h')";
    sqlite3_stmt *q = sh_db_query(s, e, own, "ii", sequence, layer);
    struct sh_columns c = sh_columns_of(s, q, "vectors", "looking for the heads of a layer", e);
    int n[2] = {0, 0}, most[2] = {run->n_kv_head, run->n_head};
    while (sh_columns_next(&c)) {
        int query = sh_column_int(&c, 1, 0, 1), found = sh_column_int(&c, 0, 1, c.bad ? 1 : most[query] - 1);
        if (!c.bad && n[query])
            c.bad = sh_fail(e, "%s: damaged: sequence %d, layer %d: found %d and %d %s heads, expected one number",
                            s->path, sequence, layer, n[query], found, query ? "query" : "KV");
        n[query] = c.bad ? 0 : found;
    }
    if (sh_columns_end(&c))
        return -1;
    *out = (struct sh_layer_heads){.query = n[1] ? n[1] : most[1], .kv = n[0] ? n[0] : most[0]};
    return out->query % out->kv
               ? sh_fail(e, "%s: damaged: sequence %d, layer %d: found %d query heads and %d KV heads, expected a "
                         "multiple", s->path, sequence, layer, out->query, out->kv) : 0;
}

int sh_store_is_empty(struct sh_store *s)
{
    struct sh_err ignored;
    sqlite3_stmt *q = sh_db_query(s, &ignored, "SELECT 1 FROM done UNION ALL SELECT 1 FROM result UNION ALL"
                                  " SELECT 1 FROM plan LIMIT 1", "");
    return sh_one_number(s, q, "done", 1, "looking for anything", &ignored) == 0;
}

int sh_store_read_results(struct sh_store *s, const char *command, const char *settings, sh_result_fn fn, void *to,
                          struct sh_err *e)
{
#define COLUMNS "SELECT settings, metric, layer, head, value, id, command FROM result"
    sqlite3_stmt *q = !command ? sh_db_query(s, e, COLUMNS " ORDER BY command, settings, id", "")
                      : settings ? sh_db_query(s, e, COLUMNS " WHERE command = ? AND settings = ? ORDER BY id", "tt",
                                               command, settings)
                                 : sh_db_query(s, e, COLUMNS " WHERE command = ? ORDER BY settings, id", "t", command);
#undef COLUMNS
    struct sh_columns c = sh_columns_of(s, q, "result", "reading results", e);
    while (sh_columns_next(&c)) {
        c.row = sh_column_long(&c, 5);
        struct sh_stored_result r = {.command = sh_column_text(&c, 6), .settings = sh_column_text(&c, 0),
                                     .metric = sh_column_text(&c, 1),
                                     .layer = sh_column_int_or(&c, 2, 0, MOST_LAYERS, -1),
                                     .head = sh_column_int_or(&c, 3, 0, MOST_HEADS, -1),
                                     .value = sh_column_real_or_nan(&c, 4)};
        c.bad = c.bad || fn(to, &r, e);
    }
    return sh_columns_end(&c);
}

int sh_store_read_measured(struct sh_store *s, const char *command, sh_measured_fn fn, void *to, struct sh_err *e)
{
    int there = sh_table_is_there(s, "measured", "reading results", e);
    if (there < 1)
        return there;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT settings, name, texts, tokens, hash FROM measured WHERE command = ?"
                                  " ORDER BY settings", "t", command);
    struct sh_columns c = sh_columns_of(s, q, "measured", "reading results", e);
    while (sh_columns_next(&c)) {
        const char *settings = sh_column_text(&c, 0);
        struct sh_measured on = {.texts = sh_column_int(&c, 2, 0, SH_MOST_ID), .tokens = sh_column_long(&c, 3),
                                 .hash = strtoull(sh_column_text(&c, 4), NULL, 16)};
        snprintf(on.name, sizeof on.name, "%s", sh_column_text(&c, 1));
        if (!c.bad)
            fn(to, settings, &on);
    }
    return sh_columns_end(&c);
}

int sh_store_read_typed(struct sh_store *s, const char *command, sh_line_fn fn, void *to, struct sh_err *e)
{
    int there = sh_table_is_there(s, "typed", "reading results", e);
    if (there < 1)
        return there;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT DISTINCT line FROM typed WHERE command = ?", "t", command);
    struct sh_columns c = sh_columns_of(s, q, "typed", "reading results", e);
    while (sh_columns_next(&c)) {
        const char *line = sh_column_text(&c, 0);
        if (!c.bad)
            fn(to, line);
    }
    return sh_columns_end(&c);
}
