/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. */
#include "traces/merge.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"
#include "traces/column.h"
#include "traces/db.h"
#include "traces/digest.h"

struct sh_merge {
    struct sh_store *out;
    struct sh_match *match;
    struct sh_inventory_seen *seen;
    struct sh_merge_counts counts;
};

static const char doing[] = "merging";

/* The parts that a store is marked as, and what they held. */
struct parts {
    struct sh_shard *shard;
    struct sh_inventory *held;
    int n, n_held;
};

static int read_parts(struct sh_store *s, struct parts *p, struct sh_err *e)
{
    return sh_shard_list(s, &p->shard, &p->n, e) ||
           sh_inventory_list(s, p->shard, p->n, &p->held, &p->n_held, e) ? -1 : 0;
}

static void clear_parts(struct parts *p)
{
    free(p->shard);
    free(p->held);
}

struct sh_merge *sh_merge_begin(struct sh_store *out, struct sh_err *e)
{
    struct sh_merge *m = xcalloc(1, sizeof *m);
    struct parts had = {0};
    m->out = out;
    m->match = sh_match_begin(out, e);
    m->seen = sh_inventory_seen_new();
    int bad = !m->match || read_parts(out, &had, e) ||
              sh_inventory_seen_add(m->seen, out->path, had.held, had.n_held, e);
    clear_parts(&had);
    if (!bad)
        return m;
    sh_merge_end(m);
    return NULL;
}

void sh_merge_end(struct sh_merge *m)
{
    if (!m)
        return;
    sh_match_end(m->match);
    sh_inventory_seen_free(m->seen);
    free(m);
}

const struct sh_merge_counts *sh_merge_counts(const struct sh_merge *m)
{
    return &m->counts;
}

/* An item of a part is missing: otherwise the part would count as present. */
static int refuse_hole(const struct sh_store *in, const struct parts *p, const struct sh_inventory *hole,
                       struct sh_err *e)
{
    int i = 0, gone = 0, all = 0;
    while (p->shard[i].part != hole->part || strcmp(p->shard[i].job, hole->job))
        i++;
    for (const struct sh_inventory *h = hole; h < p->held + p->n_held; h++)
        gone += h->part == hole->part && !strcmp(h->job, hole->job) && h->found < h->rows;
    for (int k = 0; k < p->n_held; k++)
        all += p->held[k].part == hole->part && !strcmp(p->held[k].job, hole->job);
    const char *command = p->shard[i].command;
    int parts = p->shard[i].parts;
    sh_fail(e, "%s: part %d of %d of its %s is incomplete: %d of %d %s are missing in whole or in part", in->path,
            hole->part, parts, command, gone, all, strcmp(command, "trace") ? "sets of results" : "layers");
    return sh_hint(e, "nothing of this file was merged; run its command again with --shard %d/%d to restore it",
                   hole->part, parts);
}

int sh_merge_look(struct sh_merge *m, const char *path, struct sh_err *e)
{
    struct sh_store *in = sh_store_open_read_only(path, e);
    struct parts p = {0};
    int bad = !in || sh_match_store(m->match, in, e) || read_parts(in, &p, e) ||
              sh_inventory_look(in, p.held, p.n_held, e);
    for (int i = 0; i < p.n_held && !bad; i++)
        if (p.held[i].found < p.held[i].rows)
            bad = refuse_hole(in, &p, &p.held[i], e);
    bad = bad || sh_inventory_seen_add(m->seen, in->path, p.held, p.n_held, e);
    clear_parts(&p);
    sh_store_close(in);
    return bad ? -1 : 0;
}

/* ---- rows from one store to the other ---- */

/* A query of the input store: its table, and the kinds of its columns. */
struct source { const char *table, *kinds, *query; };

/* Insert the rows of `from` as the parameters of `to` from ?first on; finalises both. */
static int copy_rows(struct sh_store *out, struct sh_store *in, const struct source *what, sqlite3_stmt *from,
                     sqlite3_stmt *to, int first, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(in, to ? from : NULL, what->table, doing, e);
    while (sh_columns_next(&c)) {
        if (sh_columns_are(&c, what->kinds))
            break;
        for (int i = 0; i < sqlite3_column_count(from); i++)
            sqlite3_bind_value(to, first + i, sqlite3_column_value(from, i));
        if (sqlite3_step(to) != SQLITE_DONE) {
            c.bad = sh_db_fail(out, doing, e);
            if ((sqlite3_errcode(out->db) & 0xff) == SQLITE_CONSTRAINT)         /* such as a duplicate row */
                sh_err_prefix(e, "%s: table %s", in->path, what->table);
        }
        sqlite3_reset(to);
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return c.bad;
}

/* ---- traces ---- */

struct target { struct sh_store *store; int sequence, layer; };

/* Blobs have checksums of their own, which detect what a disk has changed since; a sparse block has several frames. */
static int copy_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    const struct target *t = to;
    unsigned char *plain = NULL;
    size_t n;
    int is_sparse = b->kind == SH_BLOCK_SCORES && b->codec & SH_CODEC_SPARSE;
    int bad = is_sparse ? sh_codec_rows_any(b, NULL, NULL, e)
                        : sh_codec_unbytes(b->blob, b->bytes, (size_t)1 << 32, &plain, &n, e);
    free(plain);
    return bad || sh_store_put_block(t->store, t->sequence, t->layer, b, e);
}

static int copy_layer(struct sh_merge *m, struct sh_store *in, int from, int to, int layer, struct sh_err *e)
{
    struct target target = {m->out, to, layer};
    int bad = sh_db_begin(m->out, doing, e);
    for (int kind = SH_BLOCK_SCORES; kind <= SH_BLOCK_STATS && !bad; kind++)
        bad = sh_store_blocks(in, kind, from, layer, -1, copy_block, &target, e);
    if (bad && strncmp(e->text, m->out->path, strlen(m->out->path)))
        sh_err_prefix(e, "%s: sequence %d, layer %d", in->path, from, layer);
    if (!bad)
        bad = sh_db_do(m->out, e, doing, "INSERT INTO done (sequence, layer) VALUES (?,?)", "ii", to, layer);
    m->counts.layers += !bad;
    return sh_db_end(m->out, bad, doing, e);
}

static int compare_layer(struct sh_merge *m, struct sh_store *in, int from, int to, int layer, struct sh_err *e)
{
    struct sh_digest ours, theirs;
    if (sh_digest_layer(m->out, to, layer, &ours, e) || sh_digest_layer(in, from, layer, &theirs, e))
        return -1;
    m->counts.differs = !sh_digest_same(&ours, &theirs);
    if (m->counts.differs)
        return sh_fail(e, "%s: sequence %d, layer %d differs from that in %s (its sequence %d)", in->path, from, layer,
                       m->out->path, to);
    m->counts.layers_same++;
    return 0;
}

static int merge_layers(struct sh_merge *m, struct sh_store *in, int from, int to, struct sh_err *e)
{
    int layer = -1;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT layer FROM done WHERE sequence = ? ORDER BY layer", "i", from);
    struct sh_columns c = sh_columns_of(in, q, "done", doing, e);
    while (sh_columns_next(&c)) {
        layer = sh_column_int(&c, 0, layer + 1, SH_MOST_ID);
        int there = c.bad ? -1 : sh_store_is_done(m->out, to, layer, e);
        c.bad = there < 0 ||
                (there ? compare_layer(m, in, from, to, layer, e) : copy_layer(m, in, from, to, layer, e));
    }
    return sh_columns_end(&c);
}

/* Copy the run and its sequences from the shard; sequence ids continue after ours. */
static int make_run(struct sh_merge *m, struct sh_store *in, int run, struct sh_err *e)
{
    static const struct source model = {"model", "ttttiiiiiii",
        "SELECT name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model, n_vocab, max_pos"
        " FROM model WHERE id = (SELECT model FROM run WHERE id = ?)"};
    static const struct source of_run = {"run", "tttttittttiilttttt",
        "SELECT key, program, backend, device, dtype, weight_bits, record, codec, vectors, statistics,"
        " first_layer, last_layer, seed, command, started, name, weights, fingerprint"
        " FROM run JOIN model ON model.id = run.model WHERE run.id = ?"};
    static const struct source sequences = {"sequence", "itib",
        "SELECT CASE WHEN typeof(id) = 'integer' AND id BETWEEN 0 AND 1073741824"      /* SH_MOST_ID */
        " THEN id - (SELECT min(id) FROM sequence WHERE run = ?1) END AS id, source, n_tokens, tokens FROM sequence"
        " WHERE run = ?1 ORDER BY sequence.id"};
    struct sh_store *out = m->out;
    if (sh_db_begin(out, doing, e))
        return -1;
    int bad = copy_rows(out, in, &model, sh_db_query(in, e, model.query, "i", run), sh_db_query(out, e,
        "INSERT OR IGNORE INTO model (name, family, weights, fingerprint, n_layer, n_head, n_kv_head, d_head, d_model,"
        " n_vocab, max_pos) VALUES (?,?,?,?,?,?,?,?,?,?,?)", ""), 1, e);
    int before = sqlite3_total_changes(out->db);
    if (!bad)
        bad = copy_rows(out, in, &of_run, sh_db_query(in, e, of_run.query, "i", run), sh_db_query(out, e,
            "INSERT INTO run (key, program, backend, device, dtype, weight_bits, record, codec, vectors, statistics,"
            " first_layer, last_layer, seed, command, started, model) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
            " ?11, ?12, ?13, ?14, ?15, id FROM model WHERE name = ?16 AND weights = ?17 AND fingerprint = ?18", ""),
            1, e);
    if (!bad && sqlite3_total_changes(out->db) - before != 1)
        bad = sh_fail(e, "%s: damaged: run %d belongs to %s, expected one model", in->path, run,
                      sqlite3_total_changes(out->db) == before ? "no model" : "several models");
    int first, id = bad ? -1 : sh_store_new_run(out, &first, e);
    bad = id < 0 || copy_rows(out, in, &sequences, sh_db_query(in, e, sequences.query, "i", run), sh_db_query(out, e,
        "INSERT INTO sequence (run, id, source, n_tokens, tokens) VALUES (?1, ?3 + ?2, ?4, ?5, ?6)", "ii", id, first),
        3, e);
    return sh_db_end(out, bad, doing, e) ? -1 : id;
}

/* at: the ids of the sequences in the input and in the output. */
static int same_tokens(struct sh_columns *theirs, struct sh_columns *ours, int at[2])
{
    size_t n, their_n;
    at[0] = sh_column_int(theirs, 0, at[0] + 1, SH_MOST_ID);
    at[1] = sh_column_int(ours, 0, at[1] + 1, SH_MOST_ID);
    const void *tokens = sh_column_blob(ours, 1, &n), *their_tokens = sh_column_blob(theirs, 1, &their_n);
    return n == their_n && !memcmp(tokens, their_tokens, n);
}

/* The sequences of both runs in parallel: compare the tokens, then copy the layers. */
static int merge_sequences(struct sh_merge *m, struct sh_store *in, int from, int to, struct sh_err *e)
{
    static const char list[] = "SELECT id, tokens FROM sequence WHERE run = ? ORDER BY id";
    struct sh_columns theirs = sh_columns_of(in, sh_db_query(in, e, list, "i", from), "sequence", doing, e);
    struct sh_columns ours = sh_columns_of(m->out, theirs.q ? sh_db_query(m->out, e, list, "i", to) : NULL, "sequence",
                                           doing, e);
    int more = 1, at[2] = {-1, -1};
    while (more && !theirs.bad && !ours.bad) {
        int here = sh_columns_next(&ours);
        more = sh_columns_next(&theirs);
        int same = here && more ? same_tokens(&theirs, &ours, at) : here == more;
        if (theirs.bad || ours.bad)
            break;
        if (!same)
            theirs.bad = sh_fail(e, "%s: damaged: its sequences differ from those of %s, but the runs have the same "
                                 "key", in->path, m->out->path);
        else if (more)
            theirs.bad = merge_layers(m, in, at[0], at[1], e);
    }
    int bad = sh_columns_end(&theirs);
    return sh_columns_end(&ours) || bad ? -1 : 0;
}

static int merge_runs(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int from = 0;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT id, key FROM run ORDER BY id", ""), *same;
    struct sh_columns c = sh_columns_of(in, q, "run", doing, e);
    while (sh_columns_next(&c)) {
        from = sh_column_int(&c, 0, from + 1, SH_MOST_ID);
        const char *key = sh_column_text(&c, 1);
        if (c.bad)
            break;
        same = sh_db_query(m->out, e, "SELECT id FROM run WHERE key = ?", "t", key);
        int to = sh_one_number(m->out, same, "run", 0, doing, e);
        to = to ? to : make_run(m, in, from, e);
        c.bad = to < 0 || merge_sequences(m, in, from, to, e);
    }
    return sh_columns_end(&c);
}

/* ---- results and plans ---- */

/* What the input says about those results in one of its tables, which m->out has too; about results that exist already,
 * only if we know nothing. `put`: the rest of the insertion. */
static int copy_about(struct sh_merge *m, struct sh_store *in, const struct source *what, const char *put,
                      const char *command, const char *settings, int is_new, struct sh_err *e)
{
    char *sql = xasprintf("INSERT OR %s INTO %s", is_new ? "REPLACE" : "IGNORE", put);
    int bad = copy_rows(m->out, in, what, sh_db_query(in, e, what->query, "tt", command, settings),
                        sh_db_query(m->out, e, sql, ""), 1, e);
    free(sql);
    return bad;
}

/* The command line, what was measured on, and sums of sequences. */
static int copy_origin(struct sh_merge *m, struct sh_store *in, const char *command, const char *settings, int is_new,
                       struct sh_err *e)
{
    static const struct source typed = {"typed", "ttt",
        "SELECT command, settings, line FROM typed WHERE command = ? AND settings = ?"},
        measured = {"measured", "tttiit",
        "SELECT command, settings, name, texts, tokens, hash FROM measured WHERE command = ? AND settings = ?"},
        sums = {"sequence_sums", "ttb",
        "SELECT command, settings, sums FROM sequence_sums WHERE command = ? AND settings = ?"};
    int there = sh_table_is_there(in, "typed", doing, e), has_measured = sh_table_is_there(in, "measured", doing, e),
        has_sums = sh_table_is_there(in, "sequence_sums", doing, e);
    there = there == 1 ? sh_table_is_there(m->out, "typed", doing, e) : there;
    if (there < 0 || has_measured < 0 || has_sums < 0 ||
        (there && copy_about(m, in, &typed, "typed (command, settings, line) VALUES (?,?,?)", command, settings, is_new,
                             e)))
        return -1;
    if (has_measured && (sh_store_make_measured(m->out, e) ||
                         copy_about(m, in, &measured, "measured (command, settings, name, texts, tokens, hash)"
                                    " VALUES (?,?,?,?,?,?)", command, settings, is_new, e)))
        return -1;
    return has_sums && (sh_store_make_sums(m->out, e) ||
                        copy_about(m, in, &sums, "sequence_sums (command, settings, sums) VALUES (?,?,?)", command,
                                   settings, is_new, e)) ? -1 : 0;
}

static int merge_settings(struct sh_merge *m, struct sh_store *in, const char *command, const char *settings,
                          struct sh_err *e)
{
    static const struct source results = {"result", "tttIIR",
        "SELECT command, settings, metric, layer, head, value FROM result WHERE command = ? AND settings = ?"
        " ORDER BY id"};
    struct sh_digest ours, theirs;
    int n, their_n;
    if (sh_digest_results(m->out, command, settings, &ours, &n, e) ||
        sh_digest_results(in, command, settings, &theirs, &their_n, e))
        return -1;
    m->counts.differs = n && !sh_digest_same(&ours, &theirs);
    if (m->counts.differs)
        return sh_fail(e, "%s: the results of %s differ from those in %s: %.600s", in->path, command, m->out->path,
                       settings);
    m->counts.results_same += n > 0;
    if (n)
        return copy_origin(m, in, command, settings, 0, e);
    if (sh_db_begin(m->out, doing, e))
        return -1;
    int bad = copy_origin(m, in, command, settings, 1, e) ||
              copy_rows(m->out, in, &results, sh_db_query(in, e, results.query, "tt", command, settings),
                        sh_db_query(m->out, e,
        "INSERT INTO result (command, settings, metric, layer, head, value) VALUES (?,?,?,?,?,?)", ""), 1, e);
    m->counts.results += !bad;
    return sh_db_end(m->out, bad, doing, e);
}

static int merge_results(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT command, settings FROM result GROUP BY command, settings"
                                  " ORDER BY min(id)", "");
    struct sh_columns c = sh_columns_of(in, q, "result", doing, e);
    while (sh_columns_next(&c)) {
        const char *command = sh_column_text(&c, 0), *settings = sh_column_text(&c, 1);
        c.bad = c.bad || merge_settings(m, in, command, settings, e);
    }
    return sh_columns_end(&c);
}

/* column: name, weights and fingerprint of the model, name and JSON of the plan. */
static int merge_plan(struct sh_merge *m, struct sh_store *in, const char *const column[5], struct sh_err *e)
{
    int there = sh_one_number(m->out, sh_db_query(m->out, e,
        "SELECT 1 + (json = ?5) FROM plan JOIN model ON model.id = plan.model WHERE model.name = ?1 AND weights = ?2"
        " AND fingerprint = ?3 AND plan.name = ?4", "ttttt", column[0], column[1], column[2], column[3], column[4]),
        "plan", 0, doing, e);
    if (there == 1)
        return sh_fail(e, "%s: plan %s differs from the plan of that name in %s", in->path, column[3], m->out->path);
    if (there)
        return there < 0 ? -1 : 0;
    int bad = sh_db_do(m->out, e, doing, "INSERT INTO plan (model, name, json) SELECT id, ?4, ?5 FROM model"
                       " WHERE name = ?1 AND weights = ?2 AND fingerprint = ?3", "ttttt", column[0], column[1],
                       column[2], column[3], column[4]);
    m->counts.plans += !bad;
    return bad;
}

static int merge_plans(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int id = 0;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT model.name, weights, fingerprint, plan.name, json, plan.id FROM plan"
                                  " JOIN model ON model.id = plan.model ORDER BY plan.id", "");
    struct sh_columns c = sh_columns_of(in, q, "plan", doing, e);
    while (sh_columns_next(&c)) {
        const char *column[5];
        c.row = id = sh_column_int(&c, 5, id + 1, INT_MAX - 1);
        for (int i = 0; i < 5; i++)
            column[i] = sh_column_text(&c, i);
        c.bad = c.bad || merge_plan(m, in, column, e);
    }
    return sh_columns_end(&c);
}

/* ---- a file ---- */

static int add_seconds(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int id = 0;
    sqlite3_stmt *q = sh_db_query(in, e, "SELECT key, seconds, id FROM run ORDER BY id", "");
    struct sh_columns c = sh_columns_of(in, q, "run", doing, e);
    while (sh_columns_next(&c)) {
        c.row = id = sh_column_int(&c, 2, id + 1, SH_MOST_ID);
        const char *key = sh_column_text(&c, 0);
        double seconds = sh_column_real(&c, 1);
        c.bad = c.bad || sh_db_do(m->out, e, doing, "UPDATE run SET seconds = seconds + ?1 WHERE key = ?2", "rt",
                                  seconds, key);
    }
    return sh_columns_end(&c);
}

static int is_in(const struct sh_shard *h, const struct sh_shard *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i].part == h->part && !strcmp(list[i].job, h->job))
            return 1;
    return 0;
}

/* At the end: record the parts that have come, and add the time spent tracing if the part is new, or if something new
 * came from a file that is not a part of a trace. */
static int note_parts(struct sh_merge *m, struct sh_store *in, int anything_new, struct sh_err *e)
{
    struct parts p = {0};
    struct sh_shard *known = NULL;
    int n_known = 0, traces = 0, new_traces = 0;
    int bad = read_parts(in, &p, e) || sh_shard_list(m->out, &known, &n_known, e);
    bad = bad || sh_db_begin(m->out, doing, e);
    for (int i = 0; i < p.n && !bad; i++) {
        int is_trace = !strcmp(p.shard[i].command, "trace");
        traces += is_trace;
        new_traces += is_trace && !is_in(&p.shard[i], known, n_known);
        bad = sh_shard_mark(m->out, &p.shard[i], e);
    }
    bad = bad || sh_inventory_copy(m->out, p.held, p.n_held, e) ||
          ((traces ? new_traces : anything_new) && add_seconds(m, in, e));
    clear_parts(&p);
    free(known);
    return sh_db_end(m->out, bad, doing, e);
}

/* Rows that are not causal, and layers with fewer heads, need the store version of their file. */
static int raise_version(struct sh_merge *m, struct sh_store *in, struct sh_err *e)
{
    int theirs = sh_one_number(in, sh_db_query(in, e, "PRAGMA user_version", ""), "", 0, doing, e);
    return theirs < 0 ? -1 : sh_store_raise_version(m->out, theirs, e);
}

int sh_merge_add(struct sh_merge *m, const char *path, struct sh_err *e)
{
    struct sh_store *in = sh_store_open_read_only(path, e);
    long long before = m->counts.layers;
    m->counts.differs = 0;
    int bad = !in || sh_match_store(m->match, in, e) || raise_version(m, in, e) || merge_runs(m, in, e) ||
              merge_results(m, in, e) || merge_plans(m, in, e) || note_parts(m, in, m->counts.layers > before, e);
    sh_store_close(in);
    return bad ? -1 : 0;
}
