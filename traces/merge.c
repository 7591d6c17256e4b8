/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. */
#include "traces/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"
#include "traces/db.h"
#include "traces/digest.h"
#include "traces/merge_match.h"

struct sh_merge {
    struct sh_store *out;
    struct sh_match *match;
    struct sh_merge_counts counts;
};

static const char doing[] = "merging";

struct sh_merge *sh_merge_begin(struct sh_store *out, struct sh_err *e)
{
    struct sh_match *match = sh_match_begin(out, e);
    if (!match)
        return NULL;
    struct sh_merge *m = xcalloc(1, sizeof *m);
    m->out = out;
    m->match = match;
    return m;
}

void sh_merge_end(struct sh_merge *m)
{
    if (m)
        sh_match_end(m->match);
    free(m);
}

const struct sh_merge_counts *sh_merge_counts(const struct sh_merge *m)
{
    return &m->counts;
}

int sh_merge_look(struct sh_merge *m, const char *path, struct sh_err *e)
{
    struct sh_store *in = sh_store_look(path, e);
    int bad = !in || sh_match_store(m->match, in, e);
    sh_store_close(in);
    return bad ? -1 : 0;
}

/* ---- rows from one store to the other ---- */

/* May a row be copied? 0, or -1. */
typedef int check_fn(sqlite3_stmt *from, struct sh_err *e);

/* What `from` gives, row by row, as the parameters of `to` from ?first on; check NULL: every row. */
static int copy_checked(struct sh_store *out, struct sh_store *in, sqlite3_stmt *from, sqlite3_stmt *to, int first,
                        check_fn *check, struct sh_err *e)
{
    int got = from && to ? 1 : -1;
    while (got == 1 && (got = sh_db_step(in, from, doing, e)) == 1) {
        if (check && check(from, e)) {
            got = -1;
            break;
        }
        for (int i = 0; i < sqlite3_column_count(from); i++)
            sqlite3_bind_value(to, first + i, sqlite3_column_value(from, i));
        if (sqlite3_step(to) != SQLITE_DONE)
            got = sh_db_fail(out, doing, e);
        sqlite3_reset(to);
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return got;
}

static int copy_rows(struct sh_store *out, struct sh_store *in, sqlite3_stmt *from, sqlite3_stmt *to, int first,
                     struct sh_err *e)
{
    return copy_checked(out, in, from, to, first, NULL, e);
}

static int pass(void *to, const struct sh_row *row)
{
    (void)to;
    (void)row;
    return 0;
}

/* Blobs have check sums of their own, of what a disk has changed since; sparse rows are several in one. */
static int check_blob(sqlite3_stmt *from, struct sh_err *e)
{
    enum { FIRST_ROW = 1, N_ROWS, WINDOW, CODEC, COLUMNS_OF_SCORES = 6 };
    int n_column = sqlite3_column_count(from), last = n_column - 1;
    struct sh_block b = {.blob = (void *)sqlite3_column_blob(from, last),
                         .bytes = (size_t)sqlite3_column_bytes(from, last)};
    unsigned char *plain;
    size_t n;
    if (n_column == COLUMNS_OF_SCORES && sqlite3_column_int(from, CODEC) & SH_CODEC_SPARSE) {
        b.first_row = sqlite3_column_int(from, FIRST_ROW);
        b.n_rows = sqlite3_column_int(from, N_ROWS);
        b.window = sqlite3_column_int(from, WINDOW);
        b.codec = (enum sh_codec)sqlite3_column_int(from, CODEC);
        return sh_codec_rows_any(&b, pass, NULL, e);
    }
    if (sh_codec_unbytes(b.blob, b.bytes, (size_t)1 << 32, &plain, &n, e))
        return -1;
    free(plain);
    return 0;
}

/* Within a transaction of `out`: 0, or -1 and nothing is written. */
static int closing(struct sh_store *out, int bad, struct sh_err *e)
{
    if (!bad)
        bad = sh_db_exec(out, "COMMIT", doing, e);
    if (bad)
        sqlite3_exec(out->db, "ROLLBACK", NULL, NULL, NULL);
    return bad ? -1 : 0;
}

static int one_number(struct sh_store *s, sqlite3_stmt *q, struct sh_err *e)
{
    int got = q ? sh_db_step(s, q, doing, e) : -1, n = got == 1 ? sqlite3_column_int(q, 0) : got;
    sqlite3_finalize(q);
    return n;
}

/* ---- traces ---- */

static int copy_layer(struct sh_merge *m, struct sh_store *in, int from, int to, int layer, struct sh_err *e)
{
    static const char *const table[][2] = {
        {"SELECT head, first_row, n_rows, window, codec, blob FROM scores WHERE sequence = ? AND layer = ?"
         " ORDER BY head, first_row",
         "INSERT INTO scores (sequence, layer, head, first_row, n_rows, window, codec, blob) VALUES (?,?,?,?,?,?,?,?)"},
        {"SELECT kind, head, codec, blob FROM vectors WHERE sequence = ? AND layer = ? ORDER BY kind, head",
         "INSERT INTO vectors (sequence, layer, kind, head, codec, blob) VALUES (?,?,?,?,?,?)"},
        {"SELECT head, blob FROM head_stats WHERE sequence = ? AND layer = ? ORDER BY head",
         "INSERT INTO head_stats (sequence, layer, head, blob) VALUES (?,?,?,?)"}};
    int bad = sh_db_exec(m->out, "BEGIN IMMEDIATE", doing, e);
    for (size_t i = 0; i < sizeof table / sizeof *table && !bad; i++)
        bad = copy_checked(m->out, in, sh_db_query(in, e, table[i][0], "ii", from, layer),
                           sh_db_query(m->out, e, table[i][1], "ii", to, layer), 3, check_blob, e);
    if (bad && strncmp(e->text, in->path, strlen(in->path)) && strncmp(e->text, m->out->path, strlen(m->out->path)))
        sh_err_prefix(e, "%s: sequence %d, layer %d", in->path, from, layer);
    if (!bad)
        bad = sh_db_once(m->out, sh_db_query(m->out, e, "INSERT INTO done (sequence, layer) VALUES (?,?)", "ii", to,
                                             layer), doing, e);
    m->counts.layers += !bad;
    return closing(m->out, bad, e);
}

static int compare_layer(struct sh_merge *m, struct sh_store *in, int from, int to, int layer, struct sh_err *e)
{
    struct sh_digest ours, theirs;
    if (sh_digest_layer(m->out, to, layer, &ours, e) || sh_digest_layer(in, from, layer, &theirs, e))
        return -1;
    if (!sh_digest_same(&ours, &theirs))
        return sh_fail(e, "%s: sequence %d, layer %d is not what %s has of it (its sequence %d)", in->path, from, layer,
                       m->out->path, to);
    m->counts.layers_same++;
    return 0;
}

static int merge_layers(struct sh_merge *m, struct sh_store *in, int from, int to, struct sh_err *e)
{
    int got;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT layer FROM done WHERE sequence = ? ORDER BY layer", "i", from);
    while ((got = q ? sh_db_step(in, q, doing, e) : -1) == 1) {
        int layer = sqlite3_column_int(q, 0), there = sh_store_is_done(m->out, to, layer, e);
        if (there < 0 || (there ? compare_layer(m, in, from, to, layer, e) : copy_layer(m, in, from, to, layer, e))) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    return got;
}

/* The run and its sequences, as the shard has them; the numbers of the sequences go on behind ours. */
static int make_run(struct sh_merge *m, struct sh_store *in, int run, struct sh_err *e)
{
    struct sh_store *out = m->out;
    if (sh_db_exec(out, "BEGIN IMMEDIATE", doing, e))
        return -1;
    int bad = copy_rows(out, in, sh_db_query(in, e,
        "SELECT name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model, n_vocab, max_pos"
        " FROM model WHERE id = (SELECT model FROM run WHERE id = ?)", "i", run), sh_db_query(out, e,
        "INSERT OR IGNORE INTO model (name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model,"
        " n_vocab, max_pos) VALUES (?,?,?,?,?,?,?,?,?,?,?)", ""), 1, e);
    if (!bad)
        bad = copy_rows(out, in, sh_db_query(in, e,
            "SELECT key, program, backend, device, dtype, weight_bits, record, codec, vectors, statistics,"
            " first_layer, last_layer, seed, command, started, name, weights, fingerprint"
            " FROM run JOIN model ON model.id = run.model WHERE run.id = ?", "i", run), sh_db_query(out, e,
            "INSERT INTO run (key, program, backend, device, dtype, weight_bits, record, codec, vectors, statistics,"
            " first_layer, last_layer, seed, command, started, model) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
            " ?11, ?12, ?13, ?14, ?15, id FROM model WHERE name = ?16 AND weights = ?17 AND fingerprint = ?18", ""),
            1, e);
    int id = (int)sqlite3_last_insert_rowid(out->db);
    int first = bad ? -1 : one_number(out, sh_db_query(out, e, "SELECT coalesce(max(id) + 1, 0) FROM sequence", ""), e);
    bad = first < 0;
    if (!bad)
        bad = copy_rows(out, in, sh_db_query(in, e,
            "SELECT id - (SELECT min(id) FROM sequence WHERE run = ?1), source, n_tokens, tokens FROM sequence"
            " WHERE run = ?1 ORDER BY id", "i", run), sh_db_query(out, e,
            "INSERT INTO sequence (run, id, source, n_tokens, tokens) VALUES (?1, ?3 + ?2, ?4, ?5, ?6)", "ii", id,
            first), 3, e);
    return closing(out, bad, e) ? -1 : id;
}

/* The sequences of both runs side by side: the same tokens, then their layers. */
static int merge_sequences(struct sh_merge *m, struct sh_store *in, int from, int to, struct sh_err *e)
{
    static const char list[] = "SELECT id, n_tokens, tokens FROM sequence WHERE run = ? ORDER BY id";
    sqlite3_stmt *theirs = sh_db_query(in, e, list, "i", from);
    sqlite3_stmt *ours = theirs ? sh_db_query(m->out, e, list, "i", to) : NULL;
    int got = ours ? 1 : -1;
    while (got == 1) {
        int here = sh_db_step(m->out, ours, doing, e);
        got = sh_db_step(in, theirs, doing, e);
        if (got < 0 || here < 0)
            got = -1;
        else if (got != here || (got && (sqlite3_column_bytes(ours, 2) != sqlite3_column_bytes(theirs, 2) ||
                                         memcmp(sqlite3_column_blob(ours, 2), sqlite3_column_blob(theirs, 2),
                                                (size_t)sqlite3_column_bytes(ours, 2)))))
            got = sh_fail(e, "%s: damaged: its sequences are not those of %s, though the runs have the same key",
                          in->path, m->out->path);
        else if (got && merge_layers(m, in, sqlite3_column_int(theirs, 0), sqlite3_column_int(ours, 0), e))
            got = -1;
    }
    sqlite3_finalize(theirs);
    sqlite3_finalize(ours);
    return got;
}

static int merge_runs(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int got;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT id, key FROM run ORDER BY id", "");
    while ((got = q ? sh_db_step(in, q, doing, e) : -1) == 1) {
        int from = sqlite3_column_int(q, 0);
        int to = one_number(m->out, sh_db_query(m->out, e, "SELECT id FROM run WHERE key = ?", "t",
                                                (const char *)sqlite3_column_text(q, 1)), e);
        to = to ? to : make_run(m, in, from, e);
        if (to < 0 || merge_sequences(m, in, from, to, e)) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    return got;
}

/* ---- results and plans ---- */

static int merge_settings(struct sh_merge *m, struct sh_store *in, const char *command, const char *settings,
                          struct sh_err *e)
{
    struct sh_digest ours, theirs;
    int n, their_n;
    if (sh_digest_results(m->out, command, settings, &ours, &n, e) ||
        sh_digest_results(in, command, settings, &theirs, &their_n, e))
        return -1;
    if (n && !sh_digest_same(&ours, &theirs))
        return sh_fail(e, "%s: the results of %s are not those that %s has: %.600s", in->path, command, m->out->path,
                       settings);
    m->counts.results_same += n > 0;
    if (n)
        return 0;
    if (sh_db_exec(m->out, "BEGIN IMMEDIATE", doing, e))
        return -1;
    int bad = copy_rows(m->out, in, sh_db_query(in, e,
        "SELECT command, settings, metric, layer, head, value FROM result WHERE command = ? AND settings = ?"
        " ORDER BY id", "tt", command, settings), sh_db_query(m->out, e,
        "INSERT INTO result (command, settings, metric, layer, head, value) VALUES (?,?,?,?,?,?)", ""), 1, e);
    m->counts.results += !bad;
    return closing(m->out, bad, e);
}

static int merge_results(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int got;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT command, settings FROM result GROUP BY command, settings"
                                  " ORDER BY min(id)", "");
    while ((got = q ? sh_db_step(in, q, doing, e) : -1) == 1)
        if (merge_settings(m, in, (const char *)sqlite3_column_text(q, 0), (const char *)sqlite3_column_text(q, 1),
                           e)) {
            got = -1;
            break;
        }
    sqlite3_finalize(q);
    return got;
}

static int merge_plans(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    static const char of_model[] = "INSERT INTO plan (model, name, json) SELECT id, ?4, ?5 FROM model"
                                   " WHERE name = ?1 AND weights = ?2 AND fingerprint = ?3";
    int got;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT model.name, weights, fingerprint, plan.name, json FROM plan"
                                  " JOIN model ON model.id = plan.model ORDER BY plan.id", "");
    while ((got = q ? sh_db_step(in, q, doing, e) : -1) == 1) {
        const char *column[5];
        for (int i = 0; i < 5; i++)
            column[i] = (const char *)sqlite3_column_text(q, i);
        sqlite3_stmt *look = sh_db_query(m->out, e,
            "SELECT 1 + (json = ?5) FROM plan JOIN model ON model.id = plan.model WHERE model.name = ?1"
            " AND weights = ?2 AND fingerprint = ?3 AND plan.name = ?4", "ttttt", column[0], column[1], column[2],
            column[3], column[4]);
        int there = one_number(m->out, look, e);
        if (there == 1)
            there = sh_fail(e, "%s: the plan %s is not the one of that name in %s", in->path, column[3], m->out->path);
        if (there == 0) {
            there = sh_db_once(m->out, sh_db_query(m->out, e, of_model, "ttttt", column[0], column[1], column[2],
                                                   column[3], column[4]), doing, e);
            m->counts.plans += !there;
        }
        if (there < 0) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    return got;
}

/* ---- a file ---- */

/* At the end: which part has come, and the time it took, if that part is new, or something of a file that is
 * no part. */
static int note_parts(struct sh_merge *m, struct sh_store *in, int anything_new, struct sh_err *e)
{
    struct sh_shard *part = NULL;
    int n, bad = sh_shard_list(in, &part, &n, e), before, got;
    struct sh_shard *known = NULL;
    bad = bad || sh_shard_list(m->out, &known, &before, e) || sh_db_exec(m->out, "BEGIN IMMEDIATE", doing, e);
    free(known);
    for (int i = 0; i < n && !bad; i++)
        bad = sh_shard_mark(m->out, &part[i], e);
    free(part);
    int after = 0;
    if (!bad) {
        bad = sh_shard_list(m->out, &known, &after, e);
        free(known);
    }
    int add = !bad && (n ? after > before : anything_new);
    sqlite3_stmt *q = add ? sh_db_query(in, e, "SELECT key, seconds FROM run", "") : NULL;
    while (q && (got = sh_db_step(in, q, doing, e)) == 1 && !bad)
        bad = sh_db_once(m->out, sh_db_query(m->out, e, "UPDATE run SET seconds = seconds + ?1 WHERE key = ?2", "rt",
                                             sqlite3_column_double(q, 1), (const char *)sqlite3_column_text(q, 0)),
                         doing, e);
    sqlite3_finalize(q);
    return closing(m->out, bad, e);
}

int sh_merge_add(struct sh_merge *m, const char *path, struct sh_err *e)
{
    struct sh_store *in = sh_store_look(path, e);
    long long before = m->counts.layers;
    int bad = !in || sh_match_store(m->match, in, e) || merge_runs(m, in, e) || merge_results(m, in, e) ||
              merge_plans(m, in, e) || note_parts(m, in, m->counts.layers > before, e);
    sh_store_close(in);
    return bad ? -1 : 0;
}
