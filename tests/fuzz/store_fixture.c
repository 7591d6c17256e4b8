/* SPDX-License-Identifier: Apache-2.0 */
/* See store_fixture.h. */
#include "tests/fuzz/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"
#include "traces/merge.h"
#include "traces/stats.h"
#include "traces/store.h"

enum { LAYERS = 2, HEADS = 2, WIDTH = 4, LONG = 9, SHORT = 5, SEQUENCES = 2 };

static const float last_score = 0.6f;
static struct sh_err e;

static void must(int good)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", e.text);
    abort();
}

/* ---- blocks ---- */

/* Most of a row's weight is on its last key, the others are below its mean. */
static int fill_row(float *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = n == 1 ? 1 : i == n - 1 ? last_score : (1 - last_score) / (float)(n - 1);
    return n;
}

static int keys_of(int t, int n_tokens, int orderless)
{
    return orderless ? n_tokens : t + 1;
}

static struct sh_block dense(int head, int n_tokens, enum sh_codec codec, int orderless)
{
    float row[LONG];
    unsigned char packed[LONG * LONG * sizeof(float)];
    size_t count = 0, width = sh_codec_width(codec);
    for (int t = 0; t < n_tokens; t++) {
        int n = fill_row(row, keys_of(t, n_tokens, orderless));
        sh_codec_pack(codec, packed + count * width, row, n);
        count += (size_t)n;
    }
    struct sh_block b = {.kind = SH_BLOCK_SCORES, .head = head, .n_rows = n_tokens, .codec = (int)codec,
                         .window = orderless ? -n_tokens : 0};
    b.bytes = sh_codec_dense(codec, packed, count, &b.blob);
    return b;
}

static struct sh_block sparse(int head, int n_tokens)
{
    struct sh_codec_sparse *s = sh_codec_sparse_new(SH_CODEC_LOG8);
    float row[LONG];
    for (int t = 0; t < n_tokens; t++) {
        int n = fill_row(row, t + 1);
        uint64_t low = ((uint64_t)1 << t) - 1;
        sh_codec_sparse_row(s, 0, n, &low, 0, row + t, t ? 1 - (double)last_score : 0);
    }
    struct sh_block b = {.kind = SH_BLOCK_SCORES, .head = head, .n_rows = n_tokens,
                         .codec = SH_CODEC_LOG8 | SH_CODEC_SPARSE};
    b.bytes = sh_codec_sparse_end(s, &b.blob);
    sh_codec_sparse_free(s);
    return b;
}

static struct sh_block stats(int head, int n_tokens)
{
    struct sh_stats_spec spec;
    unsigned char *packed;
    float row[LONG];
    sh_stats_spec_default(&spec);
    struct sh_stats *s = sh_stats_new(&spec, n_tokens);
    for (int t = 0; t < n_tokens; t++)
        must(!sh_stats_row(s, t, 0, row, fill_row(row, t + 1)));
    size_t n = sh_stats_pack(s, &packed);
    struct sh_block b = {.kind = SH_BLOCK_STATS, .head = head};
    b.bytes = sh_codec_bytes(packed, n, SH_BYTES_RECORDS, &b.blob);
    free(packed);
    sh_stats_free(s);
    return b;
}

static struct sh_block vectors(char kind, int head, int n_tokens)
{
    float x[LONG * WIDTH];
    for (int i = 0; i < LONG * WIDTH; i++)
        x[i] = (float)(i % 7) - 3;
    struct sh_block b = {.kind = SH_BLOCK_VECTORS, .vector = kind, .head = head, .codec = SH_CODEC_F32};
    b.bytes = sh_codec_dense(SH_CODEC_F32, x, (size_t)(n_tokens * WIDTH), &b.blob);
    return b;
}

/* ---- runs ---- */

static int32_t tokens[LONG] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
static char source[] = "book.txt:0";
static const struct sh_trace_sequence sequences[SEQUENCES] = {{source, LONG, tokens}, {source, SHORT, tokens}};

static void write_layer(struct sh_store *s, int id, const struct sh_trace_run *r, int sequence, int layer)
{
    struct sh_batch b = {.sequence = sequence, .layer = layer};
    int n = sequences[sequence].n_tokens;
    for (int h = 0; h < HEADS; h++) {
        if (r->record == SH_RECORD_FULL)
            sh_batch_add(&b, dense(h, n, r->codec, r->orderless));
        if (r->record == SH_RECORD_SPARSE)
            sh_batch_add(&b, sparse(h, n));
        if (r->record != SH_RECORD_FULL)
            sh_batch_add(&b, stats(h, n));
        for (const char *v = r->vectors; *v; v++)
            if (*v == 'q' || !h)
                sh_batch_add(&b, vectors(*v, h, n));
    }
    must(!sh_store_write(s, id, (const struct sh_batch *[]){&b}, 1, &e));
    sh_batch_clear(&b);
}

static struct sh_trace_run run_of(enum sh_record record, enum sh_codec codec, int orderless, const char *kept,
                                  const char *spec)
{
    return (struct sh_trace_run){
        .model = {.name = "tiny", .family = "opt", .weights = "checkpoint", .fingerprint = 7, .n_layer = LAYERS,
                  .n_head = HEADS, .n_kv_head = 1, .d_head = WIDTH, .d_model = HEADS * WIDTH, .n_vocab = 10,
                  .max_pos = 64},
        .program = "1", .backend = orderless ? "import" : "cpu", .device = "d", .dtype = "f32", .vectors = kept,
        .statistics = spec, .command = "trace", .record = record, .codec = codec, .weight_bits = 16,
        .last_layer = LAYERS - 1, .orderless = orderless};
}

static void make_run(struct sh_store *s, const char *key, const struct sh_trace_run *r, int n)
{
    unsigned char done[SEQUENCES * LAYERS] = {0};
    int id = sh_store_begin(s, r, key, sequences, n, done, &e);
    must(id > 0);
    for (int q = 0; q < n; q++)
        for (int layer = r->first_layer; layer <= r->last_layer; layer++)
            write_layer(s, id, r, q, layer);
}

static void make_runs(struct sh_store *s)
{
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    char *text = sh_stats_spec_write(&spec);
    struct sh_trace_run run[] = {run_of(SH_RECORD_FULL, SH_CODEC_LOG8, 0, "qkv", text),
                                 run_of(SH_RECORD_SPARSE, SH_CODEC_LOG8, 0, "", text),
                                 run_of(SH_RECORD_SUMMARY, SH_CODEC_LOG8, 0, "", text),
                                 run_of(SH_RECORD_FULL, SH_CODEC_F32, 1, "", text)};
    static const char *const key[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        run[i].first_layer = i ? LAYERS - 1 : 0;        /* small: it is read whole for every input */
        make_run(s, key[i], &run[i], i ? 1 : SEQUENCES);
    }
    free(text);
}

static int put_results(struct sh_store *s)
{
    static const char *const command[] = {"replay", "eval", "persistence"};
    static const char settings[] = "{\"policy\": \"lru\", \"knobs\": \"\", \"budget\": \"4\", \"tokens\": 14, "
                                   "\"sequences\": 2}";
    static const struct sh_measured on = {"book.txt", 2, 14, 7};
    int bad = 0;
    for (size_t i = 0; i < sizeof command / sizeof *command && !bad; i++)
        bad = sh_store_results_begin(s, command[i], settings, &e) ||
              sh_store_measured(s, command[i], settings, &on, &e) ||
              sh_store_result(s, command[i], settings, "kept_mass", -1, -1, 0.75, &e) ||
              sh_store_result(s, command[i], settings, "ratio", 1, -1, 0.5, &e) || sh_store_results_end(s, &e);
    return bad;
}

/* ---- files ---- */

static void execute(const char *path, const char *sql)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) || sqlite3_exec(db, sql, NULL, NULL, NULL)) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        abort();
    }
    sqlite3_close(db);
}

static const char small_pages[] = "PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM";

void fixture_empty(const char *path)
{
    struct sh_store *s = sh_store_create(path, &e);
    must(s != NULL);
    sh_store_close(s);
    execute(path, small_pages);
}

void fixture_make(const char *path)
{
    static const struct sh_shard shard = {"a", 1, 3, "trace", "1", "0000000000000007"};    /* of the first run */
    struct sh_store *s = sh_store_typed(sh_store_create(path, &e), "replay --db t.db");
    must(s != NULL);
    make_runs(s);
    must(!put_results(s) && !sh_store_keep_plan(s, 1, "plan", "{\"layers\": []}", &e) &&
         !sh_inventory_mark(s, &shard, NULL, 0, 1, &e));
    must(!sh_partial_begin(s, &e) && !sh_partial_put(s, FIXTURE_JOB, FIXTURE_PART, tokens, FIXTURE_PART_BYTES, &e) &&
         !sh_partial_end(s, 0, &e));
    sh_store_close(s);
    execute(path, small_pages);
}

void fixture_loosen(const char *path)
{
    static const char *const tables[] = {
        "model (id, name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model, n_vocab, max_pos)",
        "run (id, model, key, program, backend, device, dtype, weight_bits, record, codec, vectors, statistics,"
        " first_layer, last_layer, seed, command, started, seconds)",
        "sequence (id, run, source, n_tokens, tokens)", "done (sequence, layer)",
        "scores (id, sequence, layer, head, first_row, n_rows, window, codec, blob)",
        "vectors (id, sequence, layer, kind, head, codec, blob)", "head_stats (id, sequence, layer, head, blob)",
        "result (id, run, command, settings, metric, layer, head, value)", "typed (command, settings, line)",
        "plan (id, model, name, json)", "shard (job, part, parts, command, program, model)",
        "partial (job, part, sum, blob)", "held (job, part, item, n_rows)"};
    execute(path, "DROP VIEW trace_summary; DROP VIEW persistence_per_layer; DROP VIEW bytes_per_layer");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        int name = (int)strcspn(tables[i], " ");
        char *sql = xasprintf("CREATE TABLE loose_%s; INSERT INTO loose_%.*s SELECT * FROM %.*s;"
                              " DROP TABLE %.*s; ALTER TABLE loose_%.*s RENAME TO %.*s",
                              tables[i], name, tables[i], name, tables[i],
                              name, tables[i], name, tables[i], name, tables[i]);
        execute(path, sql);
        free(sql);
    }
    execute(path, "VACUUM");
}

void fixture_write_to(const char *path)
{
    static const struct sh_shard shard = {"a", 2, 3, "trace", "1", "0000000000000007"};
    unsigned char done[SEQUENCES * LAYERS] = {0};
    struct sh_store *s = sh_store_update(path, &e);
    if (s && !put_results(s))
        sh_inventory_mark(s, &shard, NULL, 0, 1, &e);
    sh_store_close(s);
    if (!(s = sh_store_create(path, &e)))
        return;
    struct sh_trace_run again = run_of(SH_RECORD_FULL, SH_CODEC_LOG8, 0, "qkv", "{}"), other = again;
    other.model.name = "other";
    sh_store_begin(s, &again, "a", sequences, SEQUENCES, done, &e);
    int id = sh_store_begin(s, &other, "new", sequences, SEQUENCES, done, &e);
    struct sh_batch b = {.sequence = 1, .layer = 1};
    sh_batch_add(&b, dense(0, SHORT, SH_CODEC_LOG8, 0));
    if (id > 0 && !sh_store_write(s, id, (const struct sh_batch *[]){&b}, 1, &e))
        sh_store_add_seconds(s, id, 1, &e);
    sh_batch_clear(&b);
    sh_store_close(s);
}
