/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h: the writing functions. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "traces/column.h"
#include "traces/db.h"

static const char beginning[] = "beginning a run", noting[] = "recording the run", writing[] = "writing a layer",
                  storing[] = "storing results";

static int put_model(struct sh_store *s, const struct sh_trace_model *m, struct sh_err *e)
{
    static const char doing[] = "recording the model";
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)m->fingerprint);
    if (sh_db_do(s, e, doing,
        "INSERT OR IGNORE INTO model (name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model,"
        " n_vocab, max_pos) VALUES (?,?,?,?,?,?,?,?,?,?,?)", "ttttiiiiiii", m->name, m->family, m->weights, fingerprint,
        m->n_layer, m->n_head, m->n_kv_head, m->d_head, m->d_model, m->n_vocab, m->max_pos))
        return -1;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT id FROM model WHERE name = ? AND weights = ? AND fingerprint = ?",
                                  "ttt", m->name, m->weights, fingerprint);
    int id = sh_one_number(s, q, "model", 1, doing, e);
    return id ? id : sh_fail(e, "%s: damaged: the model was not recorded", s->path);
}

int sh_store_raise_version(struct sh_store *s, int version, struct sh_err *e)
{
    char sql[48];
    int ours = sh_one_number(s, sh_db_query(s, e, "PRAGMA user_version", ""), "", 0, noting, e);
    if (ours < 0 || ours >= version)
        return ours < 0 ? -1 : 0;
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    return sh_db_exec(s, sql, noting, e);
}

/* The number of the store's next sequence, or -1. */
static int next_sequence(struct sh_store *s, struct sh_err *e)
{
    return sh_one_number(s, sh_db_query(s, e, "SELECT coalesce(max(id) + 1, 0) AS id FROM sequence", ""), "sequence",
                         0, "numbering the sequences", e);
}

static int put_sequence(struct sh_store *s, int run, int id, const struct sh_trace_sequence *q, struct sh_err *e)
{
    return sh_db_do(s, e, "recording the sequences",
                    "INSERT INTO sequence (id, run, source, n_tokens, tokens) VALUES (?,?,?,?,?)", "iitib", id, run,
                    q->source, q->n_tokens, (const void *)q->tokens, 4 * q->n_tokens);
}

int sh_store_new_run(struct sh_store *s, int *first, struct sh_err *e)
{
    long long id = sqlite3_last_insert_rowid(s->db);
    if (id < 1 || id > SH_MOST_ID)
        return sh_fail(e, "%s: damaged: the next run would be number %lld, expected at most %d", s->path, id,
                       SH_MOST_ID);
    *first = next_sequence(s, e);
    return *first < 0 ? -1 : (int)id;
}

static int make_run(struct sh_store *s, const struct sh_trace_run *r, const char *key,
                    const struct sh_trace_sequence *sequence, int n, struct sh_err *e)
{
    time_t now = time(NULL);
    struct tm utc;
    char started[32];
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    int model = put_model(s, &r->model, e);
    if (model < 0 || sh_db_do(s, e, noting,
        "INSERT INTO run (model, key, program, backend, device, dtype, record, codec, vectors, statistics,"
        " weight_bits, first_layer, last_layer, seed, command, started)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", "itttttttttiiiltt", model, key,
        r->program, r->backend, r->device, r->dtype, sh_record_names[r->record], sh_codec_names[r->codec], r->vectors,
        r->statistics, r->weight_bits, r->first_layer, r->last_layer, r->seed, r->command, started))
        return -1;
    int first, id = sh_store_new_run(s, &first, e);
    int bad = id < 0 || (r->orderless && sh_store_raise_version(s, SH_STORE_ORDERLESS, e));
    for (int i = 0; i < n && !bad; i++)
        bad = put_sequence(s, id, first + i, &sequence[i], e);
    return bad ? -1 : id;
}

/* 0: there is none. -1: error. */
static int find_run(struct sh_store *s, const char *key, struct sh_err *e)
{
    return sh_one_number(s, sh_db_query(s, e, "SELECT id FROM run WHERE key = ?", "t", key), "run", 1,
                         "looking for an earlier run", e);
}

static int mark_done(struct sh_store *s, int run, const struct sh_trace_run *r, int n, unsigned char *done,
                     struct sh_err *e)
{
    int n_layer = r->last_layer - r->first_layer + 1;
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT done.sequence - (SELECT min(id) FROM sequence WHERE run = ?1) AS sequence, done.layer FROM done"
        " JOIN sequence ON sequence.id = done.sequence WHERE sequence.run = ?1", "i", run);
    struct sh_columns c = sh_columns_of(s, q, "done", "looking for finished layers", e);
    while (sh_columns_next(&c)) {
        int sequence = sh_column_int(&c, 0, 0, SH_MOST_ID), layer = sh_column_int(&c, 1, 0, INT_MAX) - r->first_layer;
        if (!c.bad && sequence < n && layer >= 0 && layer < n_layer)
            done[sequence * n_layer + layer] = 1;
    }
    return sh_columns_end(&c);
}

int sh_store_begin(struct sh_store *s, const struct sh_trace_run *run, const char *key,
                   const struct sh_trace_sequence *sequence, int n, unsigned char *done, struct sh_err *e)
{
    if (sh_db_begin(s, beginning, e))
        return -1;
    int id = find_run(s, key, e), found = id > 0;
    if (!id)
        id = make_run(s, run, key, sequence, n, e);
    if (found && mark_done(s, id, run, n, done, e))
        id = -1;
    int made = id > 0 && !found;
    int bad = sh_db_end(s, !made, beginning, e);        /* nothing to keep: even then a COMMIT would wait for readers */
    return made && bad ? -1 : id;
}

int sh_store_finished(struct sh_store *s, const struct sh_trace_run *run, const char *key, int n, unsigned char *done,
                      struct sh_err *e)
{
    int id = find_run(s, key, e);
    return id > 0 && mark_done(s, id, run, n, done, e) ? -1 : id;
}

/* A few pages are cached, the others go to the system as they come. The system is asked to write them to the disk
 * while the next ones are copied: otherwise the disk idles until the commit, and the processor during it. */
static void send_early(struct sh_store *s, size_t bytes)
{
#ifdef SYNC_FILE_RANGE_WRITE
    enum { AT_ONCE = 2 << 20 };
    s->unsent += bytes;
    if (s->unsent < AT_ONCE)
        return;
    s->unsent = 0;
    if (!s->file)                       /* closed after SQLite's own descriptors, as the claim is */
        s->file = open(s->path, O_RDONLY | O_CLOEXEC);
    sync_file_range(s->file, 0, 0, SYNC_FILE_RANGE_WRITE);          /* only a hint */
#else
    (void)s, (void)bytes;
#endif
}

int sh_store_put_block(struct sh_store *s, int sequence, int layer, const struct sh_block *b, struct sh_err *e)
{
    const void *blob = b->blob;
    int bad;
    if (b->kind == SH_BLOCK_SCORES)
        bad = sh_db_do(s, e, writing, "INSERT INTO scores (sequence, layer, head, first_row, n_rows, window, codec,"
                       " blob) VALUES (?,?,?,?,?,?,?,?)", "iiiiiiib", sequence, layer, b->head, b->first_row, b->n_rows,
                       b->window, b->codec, blob, (int)b->bytes);
    else if (b->kind == SH_BLOCK_VECTORS)
        bad = (b->vector == 'a' && sh_store_raise_version(s, SH_STORE_UNEVEN, e)) ||
              sh_db_do(s, e, writing, "INSERT INTO vectors (sequence, layer, kind, head, codec, blob)"
                       " VALUES (?,?,?,?,?,?)", "iitiib", sequence, layer, (char[]){b->vector, 0}, b->head, b->codec,
                       blob, (int)b->bytes);
    else
        bad = sh_db_do(s, e, writing, "INSERT INTO head_stats (sequence, layer, head, blob) VALUES (?,?,?,?)", "iiib",
                       sequence, layer, b->head, blob, (int)b->bytes);
    send_early(s, b->bytes);
    return bad;
}

struct place {                          /* of a run's sequences */
    int run, first, n;
};

/* Within a transaction. */
static int put_batch(struct sh_store *s, struct place *p, const struct sh_batch *b, struct sh_err *e)
{
    int sequence = p->first + b->sequence, bad = 0;
    if (b->made && b->sequence == p->n) {
        if (put_sequence(s, p->run, sequence, b->made, e))
            return -1;
        p->n++;
    }
    if (b->sequence < 0 || b->sequence >= p->n)
        return sh_fail(e, "%s: the run has no sequence %d", s->path, b->sequence);
    for (int i = 0; i < b->n_block && !bad; i++)
        bad = sh_store_put_block(s, sequence, b->layer, &b->block[i], e);
    return bad || sh_db_do(s, e, writing, "INSERT INTO done (sequence, layer) VALUES (?,?)", "ii", sequence, b->layer)
               ? -1 : 0;
}

int sh_store_write(struct sh_store *s, int run, const struct sh_batch *const *b, int n_batch, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT min(id) AS id, count(*) FROM sequence WHERE run = ?", "i", run);
    struct sh_columns c = sh_columns_of(s, q, "sequence", writing, e);
    struct place p = {.run = run, .n = sh_columns_next(&c) ? sh_column_int(&c, 1, 0, SH_MOST_ID) : 0};
    p.first = p.n ? sh_column_int(&c, 0, 0, SH_MOST_ID) : 0;
    int bad = 0;
    if (sh_columns_end(&c) || (!p.n && (p.first = next_sequence(s, e)) < 0) || sh_db_begin(s, writing, e))
        return -1;
    for (int i = 0; i < n_batch && !bad; i++)
        bad = put_batch(s, &p, b[i], e);
    return sh_db_end(s, bad, writing, e);
}

int sh_store_add_seconds(struct sh_store *s, int run, double seconds, struct sh_err *e)
{
    return sh_db_do(s, e, "recording the time", "UPDATE run SET seconds = seconds + ? WHERE id = ?", "ri", seconds,
                    run);
}

struct sh_store *sh_store_typed(struct sh_store *s, const char *line)
{
    if (s)
        s->line = line;
    return s;
}

static int keep_line(struct sh_store *s, const char *command, const char *settings, struct sh_err *e)
{
    int there = sh_table_is_there(s, "typed", storing, e);
    if (there < 1 || !s->line)
        return there < 0 ? -1 : 0;
    return sh_db_do(s, e, storing, "INSERT OR REPLACE INTO typed VALUES (?,?,?)", "ttt", command, settings, s->line);
}

int sh_store_group_begin(struct sh_store *s, struct sh_err *e)
{
    if (sh_db_begin(s, storing, e))
        return -1;
    s->in_group = 1;
    return 0;
}

int sh_store_group_end(struct sh_store *s, int bad, struct sh_err *e)
{
    s->in_group = 0;
    return sh_db_end(s, bad, storing, e);
}

/* A set of results failed: undone here, or with its group. */
static int give_up(struct sh_store *s, struct sh_err *e)
{
    return s->in_group ? -1 : sh_db_end(s, 1, storing, e);
}

int sh_store_results_erase(struct sh_store *s, const char *command, const char *settings, struct sh_err *e)
{
    return sh_db_do(s, e, storing, "DELETE FROM result WHERE command = ? AND settings = ?", "tt", command, settings);
}

int sh_store_results_begin(struct sh_store *s, const char *command, const char *settings, struct sh_err *e)
{
    if (!s->in_group && sh_db_begin(s, storing, e))
        return -1;
    int bad = sh_store_results_erase(s, command, settings, e) || keep_line(s, command, settings, e);
    return bad ? give_up(s, e) : 0;
}

int sh_store_result(struct sh_store *s, const char *command, const char *settings, const char *metric, int layer,
                    int head, double value, struct sh_err *e)
{
    if (!s->put)
        s->put = sh_db_query(s, e,
            "INSERT INTO result (command, settings, metric, layer, head, value)"
            " VALUES (?,?,?, CASE WHEN ?4 < 0 THEN NULL ELSE ?4 END, CASE WHEN ?5 < 0 THEN NULL ELSE ?5 END, ?)", "");
    int bad = !s->put;
    if (!bad) {
        bad = sh_db_bind(s, s->put, e, "tttiir", command, settings, metric, layer, head, value) ||
              sh_db_step(s, s->put, storing, e) < 0;
        sqlite3_reset(s->put);
    }
    return bad ? give_up(s, e) : 0;
}

int sh_store_make_measured(struct sh_store *s, struct sh_err *e)
{
    return sh_db_exec(s, "CREATE TABLE IF NOT EXISTS measured (command TEXT NOT NULL, settings TEXT NOT NULL,"
                      " name TEXT NOT NULL, texts INTEGER NOT NULL, tokens INTEGER NOT NULL, hash TEXT NOT NULL,"
                      " PRIMARY KEY (command, settings)) WITHOUT ROWID", storing, e);
}

int sh_store_measured(struct sh_store *s, const char *command, const char *settings, const struct sh_measured *on,
                      struct sh_err *e)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)on->hash);
    int bad = sh_store_make_measured(s, e) ||
              sh_db_do(s, e, storing, "INSERT OR REPLACE INTO measured VALUES (?,?,?,?,?,?)", "tttilt", command,
                       settings, on->name, on->texts, on->tokens, hash);
    return bad ? give_up(s, e) : 0;
}

int sh_store_make_sums(struct sh_store *s, struct sh_err *e)
{
    return sh_db_exec(s, "CREATE TABLE IF NOT EXISTS sequence_sums (command TEXT NOT NULL, settings TEXT NOT NULL,"
                      " sums BLOB NOT NULL, PRIMARY KEY (command, settings)) WITHOUT ROWID", storing, e);
}

int sh_store_sums(struct sh_store *s, const char *command, const char *settings, const double *sums, size_t n,
                  struct sh_err *e)
{
    size_t bytes = n * sizeof *sums;
    int bad = (bytes > 1 << 30 && sh_fail(e, "%s: the sums of each sequence take %zu bytes, which is too large for it",
                                          s->path, bytes)) || sh_store_make_sums(s, e) ||
              sh_db_do(s, e, storing, "INSERT OR REPLACE INTO sequence_sums VALUES (?,?,?)", "ttb", command, settings,
                       sums, (int)bytes);
    return bad ? give_up(s, e) : 0;
}

int sh_store_results_end(struct sh_store *s, struct sh_err *e)
{
    return s->in_group ? 0 : sh_db_end(s, 0, storing, e);
}

int sh_store_keep_plan(struct sh_store *s, int run, const char *name, const char *json, struct sh_err *e)
{
    static const char doing[] = "storing the plan";
    if (sh_db_begin(s, doing, e))
        return -1;
    int bad = sh_db_do(s, e, doing, "DELETE FROM plan WHERE name = ?2 AND"
                       " model = (SELECT model FROM run WHERE id = ?1)", "it", run, name) ||
              sh_db_do(s, e, doing, "INSERT INTO plan (model, name, json) SELECT model, ?2, ?3 FROM run WHERE id = ?1",
                       "itt", run, name, json);
    return sh_db_end(s, bad, doing, e);
}
