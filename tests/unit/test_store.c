/* SPDX-License-Identifier: Apache-2.0 */
/* traces/store and traces/writer: what a store keeps, what it refuses, and what is left when something
 * goes wrong in between. Files are looked at with SQLite itself. */
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"
#include "tests/unit/scratch_store.h"
#include "traces/store.h"
#include "traces/writer.h"

static struct sh_err e;
static char db[2048];                                   /* path of the store of the running test  */

static void fresh(void)
{
    scratch_clear();
    snprintf(db, sizeof db, "%s", scratch_path("t.db"));
}

static void make_with(const char *sql)
{
    sqlite3 *c;
    CU_ASSERT_FATAL(sqlite3_open(db, &c) == SQLITE_OK && sqlite3_exec(c, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(c);
}

static int next_to(const char *ending)                   /* is there a file t.db<ending>?          */
{
    char name[32];
    snprintf(name, sizeof name, "t.db%s", ending);
    return access(scratch_path(name), F_OK) == 0;
}

/* A batch of `n` blocks of scores with one byte each; block k belongs to head k. */
static struct sh_batch batch(int sequence, int layer, int n)
{
    struct sh_batch b = {.sequence = sequence, .layer = layer};
    for (int k = 0; k < n; k++) {
        struct sh_block block = {.kind = SH_BLOCK_SCORES, .head = k, .n_rows = 1, .codec = SH_CODEC_LOG8,
                                 .blob = xmalloc(1), .bytes = 1};
        block.blob[0] = (unsigned char)(10 * layer + k);
        sh_batch_add(&b, block);
    }
    return b;
}

static int write_batch(struct sh_store *s, int id, struct sh_batch b)
{
    int status = sh_store_write(s, id, (const struct sh_batch *[]){&b}, 1, &e);
    sh_batch_clear(&b);
    return status;
}

static void made_and_opened(void)
{
    fresh();
    CU_ASSERT(!sh_store_open(db, &e) && strstr(e.text, db) != NULL);
    CU_ASSERT(!sh_store_update(db, &e) && !next_to(""));
    struct sh_store *s = sh_store_create(db, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_STRING_EQUAL(sh_store_path(s), db);
    sh_store_close(s);
    sh_store_close(NULL);
    CU_ASSERT(ask_store(db, "PRAGMA application_id") == 0x53485253 && ask_store(db, "PRAGMA user_version") == 2);
    CU_ASSERT(!next_to("-wal") && !next_to("-shm") && !next_to("-journal") && !next_to(".new"));
    s = sh_store_open(db, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    unsigned char done[6] = {0};
    CU_ASSERT(sh_store_begin(s, &small_run, "k", small_sequences, 2, done, &e) == -1);
    CU_ASSERT(tap_says(e.text, "readonly"));
    sh_store_close(s);
    s = sh_store_create(db, &e);
    CU_ASSERT(s && sh_store_check_pages(s, &e) == 0);
    sh_store_close(s);
    char nowhere[2100];
    snprintf(nowhere, sizeof nowhere, "%s/none/t.db", scratch_folder());
    CU_ASSERT(!sh_store_create(nowhere, &e) && strstr(e.text, "none") != NULL);
    CU_ASSERT(!sh_store_create(scratch_folder(), &e) && !sh_store_open(scratch_folder(), &e));
}

/* The file that is there now must be refused for this reason by everything, and stay as it is. */
static int refused(const char *why)
{
    char *before = NULL, *after = NULL;
    size_t n[2] = {0};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(db, "rb");
        char **to = i ? &after : &before;
        *to = xcalloc(1 << 17, 1);
        n[i] = fread(*to, 1, 1 << 17, f);
        fclose(f);
        struct sh_store *(*const open[])(const char *, struct sh_err *) = {
            sh_store_open, sh_store_update, sh_store_create};
        for (int k = 0; k < 3 && !i; k++) {
            struct sh_store *s = k == 2 && !n[0] ? NULL : open[k](db, &e);
            if (s || !strstr(e.text, why) || !strstr(e.text, db))
                printf("# %d: expected \"%s\" in \"%s\"\n", k, why, e.text);
            CU_ASSERT(!s && strstr(e.text, why) != NULL && strstr(e.text, db) != NULL);
            sh_store_close(s);
        }
    }
    int same = n[0] == n[1] && !memcmp(before, after, n[0]);
    free(before);
    free(after);
    return same;
}

static void foreign_files(void)
{
    fresh();
    scratch_write("t.db", "", 0);
    CU_ASSERT(refused("empty"));
    struct sh_store *s = sh_store_create(db, &e);       /* an empty file is taken over            */
    CU_ASSERT(s != NULL);
    sh_store_close(s);
    fresh();
    char junk[5000];
    memset(junk, 'x', sizeof junk);
    scratch_write("t.db", junk, sizeof junk);
    CU_ASSERT(refused("not a SQLite database"));
    fresh();
    make_with("CREATE TABLE t (x)");
    CU_ASSERT(refused("another program"));
    fresh();
    make_with("PRAGMA application_id = 1; PRAGMA user_version = 1; PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    CU_ASSERT(refused("another program"));              /* not even its journal mode changes      */
    fresh();
    make_with("PRAGMA application_id = 0x53485253; PRAGMA user_version = 5; CREATE TABLE t (x)");
    CU_ASSERT(refused("newer"));
    fresh();
    make_with("PRAGMA application_id = 0x53485253; PRAGMA user_version = 1; CREATE TABLE t (x)");
    CU_ASSERT(refused("older"));                        /* its log8 was another                   */
}

/* The file by itself, as after a machine has lost its power. */
static void settled(void)
{
    fresh();
    unsigned char done[6] = {0};
    char name[sizeof db];
    struct sh_store *s = sh_store_create(db, &e);
    CU_ASSERT_FATAL(s && sh_store_begin(s, &small_run, "k", small_sequences, 2, done, &e) == 1);
    CU_ASSERT_FATAL(!sh_store_sync(s, &e));
    snprintf(name, sizeof name, "%s", scratch_path("u.db"));
    CU_ASSERT(!link(db, name));                         /* by that name it has no journal */
    snprintf(db, sizeof db, "%s", name);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM run") == 1);
    sh_store_close(s);
}

static void claimed_once(void)
{
    fresh();
    struct sh_store *s = sh_store_create(db, &e), *other = sh_store_create(db, &e);
    CU_ASSERT_FATAL(s && other && !sh_store_lock(s, &e));
    CU_ASSERT(sh_store_lock(other, &e) == -1 && strstr(e.text, db));
    sh_store_close(other);
    sh_store_close(s);
    CU_ASSERT(!sh_store_is_locked(db));
    CU_ASSERT((s = sh_store_create(db, &e)) && !sh_store_lock(s, &e));
    sh_store_close(s);
    CU_ASSERT(!sh_store_is_locked("/nowhere/t.db"));
}

static void runs_are_found_again(void)
{
    fresh();
    unsigned char done[6] = {0};
    struct sh_store *s = sh_store_create(db, &e);
    int id = sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e);
    CU_ASSERT(id > 0 && !memchr(done, 1, 6));
    CU_ASSERT(write_batch(s, id, batch(0, 2, 2)) == 0 && write_batch(s, id, batch(1, 3, 1)) == 0);
    CU_ASSERT(sh_store_add_seconds(s, id, 1.5, &e) == 0 && sh_store_add_seconds(s, id, 2, &e) == 0);
    sh_store_close(s);
    s = sh_store_create(db, &e);
    CU_ASSERT(sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e) == id);
    CU_ASSERT(!memcmp(done, "\0\1\0\0\0\1", 6));
    unsigned char none[6] = {0};
    int other = sh_store_begin(s, &small_run, "other", small_sequences, 2, none, &e);
    CU_ASSERT(other > 0 && other != id && !memchr(none, 1, 6));
    CU_ASSERT(write_batch(s, other, batch(0, 1, 1)) == 0);

    struct sh_stored_sequence *q;
    struct sh_stored_run *r;
    int n, n_token, n_run;
    int32_t *t;
    CU_ASSERT(sh_store_sequences(s, 0, &q, &n, &e) == 0 && n == 4);
    for (int i = 0; i < n; i++)                         /* numbered on over the runs              */
        CU_ASSERT(q[i].id == i && q[i].run == (i < 2 ? id : other) && q[i].n_tokens == (i % 2 ? 2 : 5) &&
                  !strcmp(q[i].source, small_sequences[i % 2].source));
    sh_stored_sequences_free(q, n);
    CU_ASSERT(sh_store_sequences(s, other, &q, &n, &e) == 0 && n == 2 && q[0].id == 2);
    sh_stored_sequences_free(q, n);
    CU_ASSERT(sh_store_tokens(s, 3, &t, &n_token, &e) == 0 && n_token == 2 && t[0] == 1 && t[1] == 4);
    free(t);
    CU_ASSERT(sh_store_tokens(s, 4, &t, &n_token, &e) == -1 && strstr(e.text, "no sequence 4") != NULL);
    CU_ASSERT(sh_store_is_done(s, 0, 2, &e) && sh_store_is_done(s, 2, 1, &e) && !sh_store_is_done(s, 0, 1, &e));
    CU_ASSERT(sh_store_runs(s, &r, &n_run, &e) == 0 && n_run == 2);
    CU_ASSERT(r[0].id == id && r[0].n_sequence == 2 && r[0].n_tokens == 7 && r[0].n_done == 2 &&
              sh_store_blob_bytes(s, id, &e) == 3 && r[0].seconds == 3.5 &&
              r[0].first_layer == 1 && r[0].last_layer == 3 &&
              r[0].record == SH_RECORD_FULL && r[0].codec == SH_CODEC_LOG8 && !strcmp(r[0].model, "m"));
    sh_stored_runs_free(r, n_run);
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM model") == 1 &&
              ask_store(db, "SELECT seed FROM run WHERE id = 1") == -5);
}

struct list {
    int n, heads[8], bytes[8], stop_after;
};

static int note(void *to, const struct sh_block *b, struct sh_err *err)
{
    struct list *l = to;
    l->heads[l->n] = b->head;
    l->bytes[l->n++] = b->blob[0];
    return l->n == l->stop_after ? sh_fail(err, "stopped") : 0;
}

/* Each batch is one transaction: one that fails in its last block leaves nothing of the others. */
static void batches_are_whole(void)
{
    fresh();
    unsigned char done[6] = {0};
    struct sh_store *s = sh_store_create(db, &e);
    int id = sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e);
    CU_ASSERT(write_batch(s, id, batch(0, 1, 2)) == 0);
    CU_ASSERT(write_batch(s, id, batch(0, 1, 1)) == -1 && strstr(e.text, db) && strstr(e.text, "has that row already"));
    struct sh_batch twice = batch(1, 2, 3);
    twice.block[2].head = 0;
    CU_ASSERT(write_batch(s, id, twice) == -1 && !sh_store_is_done(s, 1, 2, &e));
    struct sh_batch mixed = batch(1, 3, 1);
    struct sh_block v = {.kind = SH_BLOCK_VECTORS, .vector = 'q', .blob = (unsigned char *)xstrdup("v"), .bytes = 1};
    struct sh_block t = {.kind = SH_BLOCK_STATS, .head = 1, .blob = (unsigned char *)xstrdup("t"), .bytes = 1};
    sh_batch_add(&mixed, v);
    sh_batch_add(&mixed, t);
    CU_ASSERT(write_batch(s, id, mixed) == 0);
    struct list l = {0}, stopped = {.stop_after = 1}, one = {0};
    CU_ASSERT(sh_store_blocks(s, SH_BLOCK_SCORES, 0, 1, -1, note, &l, &e) == 0);
    CU_ASSERT(l.n == 2 && l.heads[0] == 0 && l.heads[1] == 1 && l.bytes[1] == 11);
    CU_ASSERT(sh_store_blocks(s, SH_BLOCK_SCORES, 0, 1, 1, note, &one, &e) == 0 && one.n == 1 && one.bytes[0] == 11);
    CU_ASSERT(sh_store_blocks(s, SH_BLOCK_SCORES, 0, 1, -1, note, &stopped, &e) == -1);
    CU_ASSERT_STRING_EQUAL(e.text, "stopped");
    l = (struct list){0};
    CU_ASSERT(sh_store_blocks(s, SH_BLOCK_VECTORS, 1, 3, -1, note, &l, &e) == 0 && l.n == 1 && l.bytes[0] == 'v');
    CU_ASSERT(sh_store_blocks(s, SH_BLOCK_STATS, 1, 3, -1, note, &l, &e) == 0 && l.n == 2 && l.bytes[1] == 't');
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM scores") == 3 && ask_store(db, "SELECT count(*) FROM done") == 2);
    CU_ASSERT(!next_to("-wal") && !next_to("-shm") && !next_to("-journal"));
}

static void results_are_replaced(void)
{
    fresh();
    struct sh_store *s = sh_store_create(db, &e);
    for (int round = 0; round < 2; round++) {
        CU_ASSERT(sh_store_results_begin(s, "persistence", "{\"a\":1}", &e) == 0);
        CU_ASSERT(sh_store_result(s, "persistence", "{\"a\":1}", "ratio", -1, -1, 0.5 + round, &e) == 0);
        CU_ASSERT(sh_store_result(s, "persistence", "{\"a\":1}", "ratio", 2, 3, (double)NAN, &e) == 0);
        CU_ASSERT(sh_store_results_end(s, &e) == 0);
    }
    CU_ASSERT(sh_store_results_begin(s, "persistence", "{\"a\":2}", &e) == 0);
    CU_ASSERT(sh_store_result(s, "persistence", "{\"a\":2}", "lift", 0, -1, -2, &e) == 0);
    CU_ASSERT(sh_store_results_end(s, &e) == 0);
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM result") == 3);
    CU_ASSERT(ask_store(db, "SELECT value FROM result WHERE layer IS NULL AND head IS NULL") == 1.5);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM result WHERE layer = 2 AND head = 3 AND value IS NULL") == 1);
    CU_ASSERT(ask_store(db, "SELECT value FROM result WHERE layer = 0 AND head IS NULL AND metric = 'lift'") == -2);
    s = sh_store_update(db, &e);                        /* results that are not ended are not there */
    CU_ASSERT(sh_store_results_begin(s, "persistence", "{\"a\":2}", &e) == 0);
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM result") == 3);
}

/* With room for one byte in the queue each push waits for the one before; the order stays. */
static void writer_keeps_order(void)
{
    for (size_t limit = 1; limit <= 1 << 20; limit <<= 20) {
        fresh();
        unsigned char done[6] = {0};
        struct sh_store *s = sh_store_create(db, &e);
        int id = sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e);
        struct sh_writer *w = sh_writer_begin(s, id, limit, &e);
        for (int i = 0; i < 6; i++) {
            struct sh_batch b = batch(i / 3, 3 - i % 3, 2);
            CU_ASSERT(sh_writer_push(w, &b, &e) == 0 && b.n_block == 0 && b.block == NULL);
        }
        CU_ASSERT(sh_writer_end(w, &e) == 0);
        sh_store_close(s);
        CU_ASSERT(ask_store(db, "SELECT count(*) FROM done") == 6 &&
                  ask_store(db, "SELECT count(*) FROM scores") == 12);
        CU_ASSERT(ask_store(db, "SELECT count(*) FROM scores AS s JOIN scores AS t ON t.id = s.id + 1"
                      " WHERE (t.sequence, -t.layer, t.head) <= (s.sequence, -s.layer, s.head)") == 0);
    }
}

struct pushing {
    struct sh_writer *w;
    volatile int pushed;
};

static void *push_three(void *argument)
{
    struct pushing *p = argument;
    struct sh_err mine;
    for (int i = 0; i < 3; i++) {
        struct sh_batch b = batch(0, 1 + i, 1);
        sh_writer_push(p->w, &b, &mine);
        __atomic_store_n(&p->pushed, i + 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* While another connection holds the file the first batch cannot be written, and the second fills the
 * queue: the tracer waits, and goes on when the file is free. */
static void writer_holds_back(void)
{
    fresh();
    unsigned char done[6] = {0};
    struct sh_store *s = sh_store_create(db, &e);
    int id = sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e);
    sqlite3 *other;
    CU_ASSERT_FATAL(sqlite3_open(db, &other) == SQLITE_OK);
    sqlite3_busy_timeout(other, 30000);                 /* the writer looks in time and again, which COMMIT waits for */
    CU_ASSERT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    struct pushing p = {.w = sh_writer_begin(s, id, 2, &e)};
    pthread_t thread;
    pthread_create(&thread, NULL, push_three, &p);
    usleep(300000);
    CU_ASSERT(__atomic_load_n(&p.pushed, __ATOMIC_SEQ_CST) == 2);
    CU_ASSERT(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(other);
    pthread_join(thread, NULL);
    CU_ASSERT(sh_writer_end(p.w, &e) == 0 && p.pushed == 3);
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM done") == 3);
}

/* The first failure stops everything after it and comes back from push and end. */
static void writer_passes_failures_on(void)
{
    fresh();
    unsigned char done[6] = {0};
    struct sh_store *s = sh_store_create(db, &e);
    int id = sh_store_begin(s, &small_run, "key", small_sequences, 2, done, &e), failed = 0;
    struct sh_writer *w = sh_writer_begin(s, id, 1, &e);    /* so each push waits for the one before  */
    struct sh_batch good = batch(0, 1, 1), bad = batch(0, 1, 1);
    CU_ASSERT(sh_writer_push(w, &good, &e) == 0 && sh_writer_push(w, &bad, &e) == 0);
    for (int i = 0; i < 3; i++) {
        struct sh_batch b = batch(1, 1 + i, 1);
        failed += sh_writer_push(w, &b, &e) == -1 && strstr(e.text, "has that row already") != NULL;
        CU_ASSERT(b.n_block == 0);
    }
    CU_ASSERT(failed == 3);
    e.text[0] = '\0';
    CU_ASSERT(sh_writer_end(w, &e) == -1 && strstr(e.text, "has that row already") && strstr(e.text, db));
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM done") == 1);
}

static int count_result(void *to, const struct sh_stored_result *r, struct sh_err *err)
{
    (void)err;
    *(int *)to += r->value > 0;
    return 0;
}

/* Everything of the store; 0, or -1 with the first error. */
static int read_it(void)
{
    struct sh_store *s = sh_store_open(db, &e);
    struct sh_stored_run *runs = NULL;
    struct sh_stored_sequence *q = NULL;
    struct sh_batch kept = {0};
    int32_t *t = NULL;
    int n_run = 0, n = 0, seen = 0, n_token, bad = !s || sh_store_runs(s, &runs, &n_run, &e) ||
                                         sh_store_sequences(s, 0, &q, &n, &e) ||
                                         sh_store_tokens(s, q[0].id, &t, &n_token, &e) ||
                                         sh_store_blocks(s, SH_BLOCK_SCORES, 0, 1, -1, sh_store_keep, &kept, &e) ||
                                         sh_store_read_results(s, "replay", NULL, count_result, &seen, &e);
    free(t);
    sh_batch_clear(&kept);
    sh_stored_sequences_free(q, n);
    sh_stored_runs_free(runs, n_run);
    sh_store_close(s);
    return bad ? -1 : 0;
}

/* The columns of a table without types and rules. */
#define LOOSE(table, columns) \
    "CREATE TABLE l (" columns "); INSERT INTO l SELECT * FROM " table "; DROP TABLE " table ";" \
    "ALTER TABLE l RENAME TO " table ";"
#define LOOSE_SEQUENCE LOOSE("sequence", "id, run, source, n_tokens, tokens")
#define LOOSE_SCORES LOOSE("scores", "id, sequence, layer, head, first_row, n_rows, window, codec, blob")
#define LOOSE_RESULT LOOSE("result", "id, run, command, settings, metric, layer, head, value")

static void values_of_other_kinds(void)
{
    static const char views[] = "DROP VIEW trace_summary; DROP VIEW persistence_per_layer; DROP VIEW bytes_per_layer;";
    static const struct { const char *sql, *why; } wrong[] = {
        {"UPDATE run SET first_layer = 1 << 40",
         "table run, row 1: first_layer is 1099511627776, expected a whole number from 0"},
        {"UPDATE model SET n_head = 'many'", "n_head is the text \"many\""},
        {"UPDATE run SET device = x'00'", "device is a blob of 1 bytes"},
        {"UPDATE run SET device = char(97, 0, 98)", "device is "},
        {LOOSE_SEQUENCE "UPDATE sequence SET source = NULL", "table sequence, row 0: source is NULL"},
        {LOOSE_SEQUENCE "UPDATE sequence SET id = 0", "id is 0, expected a whole number from 1"},
        {"UPDATE sequence SET tokens = '12345678901234567890' WHERE id = 0", "tokens is the text"},
        {LOOSE_SCORES "UPDATE scores SET blob = 'x'", "table scores: blob is the text"},
        {LOOSE_SCORES "UPDATE scores SET n_rows = 1.5", "n_rows is 1.5"},
        {LOOSE_SCORES "INSERT INTO scores SELECT * FROM scores", "comes after head 0, row 0"},
        {LOOSE_RESULT "UPDATE result SET metric = NULL", "table result, row 1: metric is NULL"},
        {"UPDATE result SET value = 'inf'", "value is the text \"inf\", expected a number"},
        {"ALTER TABLE plan ADD COLUMN more AS (name)", "column more of table plan"},
        {"ALTER TABLE scores RENAME TO other; CREATE VIEW scores AS SELECT * FROM other", "view"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned char done[6] = {0};
        fresh();
        struct sh_store *s = sh_store_create(db, &e);
        int id = sh_store_begin(s, &small_run, "k", small_sequences, 2, done, &e);
        CU_ASSERT(!write_batch(s, id, batch(0, 1, 2)) && !sh_store_results_begin(s, "replay", "{}", &e) &&
                  !sh_store_result(s, "replay", "{}", "kept_mass", -1, -1, 0.5, &e) && !sh_store_results_end(s, &e));
        sh_store_close(s);
        CU_ASSERT(read_it() == 0);
        make_with(views);
        make_with(wrong[i].sql);
        e.text[0] = '\0';
        int bad = read_it();
        if (!bad || !strstr(e.text, wrong[i].why))
            printf("# %s: expected \"%s\" in \"%s\"\n", wrong[i].sql, wrong[i].why, e.text);
        CU_ASSERT(bad && strstr(e.text, wrong[i].why) && strstr(e.text, db));
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"files: made, opened, read only, no leftovers", made_and_opened},
        {"files: empty, foreign and newer ones are refused and left as they are", foreign_files},
        {"files: what is settled is in the file itself", settled},
        {"files: one job at a time claims a store", claimed_once},
        {"runs: the same key finds its run and what is done; sequences are numbered on", runs_are_found_again},
        {"batches: all or nothing", batches_are_whole},
        {"results: replaced in one transaction, NaN is NULL", results_are_replaced},
        {"writer: batches keep their order", writer_keeps_order},
        {"writer: a full queue holds the tracer back", writer_holds_back},
        {"writer: a failure comes back", writer_passes_failures_on},
        {"values of other kinds, computed columns and views are refused", values_of_other_kinds},
        {0}};
    return tap_run("store", tests);
}
