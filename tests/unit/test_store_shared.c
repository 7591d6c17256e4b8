/* SPDX-License-Identifier: Apache-2.0 */
/* traces/store and traces/wait: journals that killed programs leave, and several programs with one store at the same
 * time. Files are looked at with SQLite itself. */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
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

static int next_to(const char *ending)                   /* is there a file t.db<ending>?          */
{
    char name[32];
    snprintf(name, sizeof name, "t.db%s", ending);
    return access(scratch_path(name), F_OK) == 0;
}

/* The change of which a journal is left; in WAL mode the log has it, else the journal what was there before. */
static void begin_change(sqlite3 **c, const char *mode)
{
    CU_ASSERT_FATAL(sqlite3_open(db, c) == SQLITE_OK);
    char *sql = xasprintf("PRAGMA journal_mode = %s; PRAGMA cache_size = 1; BEGIN; INSERT INTO run SELECT id + 1,"
                          " model, 'other', program, backend, device, dtype, weight_bits, record, codec, vectors,"
                          " statistics,"
                          " first_layer, last_layer, seed, command, started, seconds FROM run; UPDATE sequence SET"
                          " tokens = zeroblob(1000000)%s", mode, strcmp(mode, "WAL") ? "" : "; COMMIT");
    CU_ASSERT(sqlite3_exec(*c, sql, NULL, NULL, NULL) == SQLITE_OK);
    free(sql);
}

static void fresh_with_run(void)
{
    fresh();
    struct sh_store *s = sh_store_create(db, &e);
    unsigned char done[6] = {0};
    CU_ASSERT_FATAL(s && sh_store_begin(s, &small_run, "k", small_sequences, 2, done, &e) == 1);
    sh_store_close(s);
}

/* A store that was deleted after a crash leaves a journal behind; it must not come back from it. */
static void stale_journal(void)
{
    static const char *const mode[][2] = {{"WAL", "-wal"}, {"DELETE", "-journal"}};
    for (int i = 0; i < 2; i++) {
        fresh_with_run();
        sqlite3 *c;
        begin_change(&c, mode[i][0]);
        char journal[2100], kept[2100];
        snprintf(journal, sizeof journal, "%s%s", db, mode[i][1]);
        snprintf(kept, sizeof kept, "%s-kept", db);
        CU_ASSERT(link(journal, kept) == 0);
        sqlite3_exec(c, "ROLLBACK", NULL, NULL, NULL);
        sqlite3_close(c);
        CU_ASSERT(unlink(db) == 0);
        CU_ASSERT(rename(kept, journal) == 0);
        struct sh_store *s = sh_store_create(db, &e);
        CU_ASSERT(s && sh_store_check_pages(s, &e) == 0);
        sh_store_close(s);
        CU_ASSERT(ask_store(db, "SELECT count(*) FROM run") == 0 && !next_to("-wal") && !next_to("-journal"));
    }
}

/* A version of this program that wrote in WAL mode was killed: what it committed is there, the file leaves the mode. */
static void left_in_wal(void)
{
    fresh_with_run();
    sqlite3 *c;
    begin_change(&c, "WAL");
    char name[sizeof db], log[2100];
    snprintf(name, sizeof name, "%s", scratch_path("u.db"));
    snprintf(log, sizeof log, "%s-wal", db);
    CU_ASSERT(!link(db, name) && !link(log, scratch_path("u.db-wal")));     /* as they lie after a kill */
    sqlite3_file_control(c, "main", SQLITE_FCNTL_PERSIST_WAL, &(int){1});
    sqlite3_db_config(c, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(c);
    snprintf(db, sizeof db, "%s", name);
    struct sh_store *s = sh_store_create(db, &e);
    CU_ASSERT_FATAL(s != NULL);
    CU_ASSERT(access(scratch_path("u.db-wal"), F_OK));
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM run") == 2);
}

static void copy(const char *from, const char *name)
{
    size_t most = 1 << 24, n = 0;
    char *at = xmalloc(most);
    FILE *f = fopen(from, "rb");
    CU_ASSERT_FATAL(f && (n = fread(at, 1, most, f)) > 0 && n < most && !fclose(f));
    scratch_write(name, at, n);
    free(at);
}

/* Half a change in the file: who may only read it sees it undone. */
static void half_changed(void)
{
    fresh_with_run();
    sqlite3 *c;
    begin_change(&c, "DELETE");
    char journal[2100], name[sizeof db];
    snprintf(name, sizeof name, "%s", scratch_path("u.db"));
    snprintf(journal, sizeof journal, "%s-journal", db);
    copy(journal, "u.db-journal");
    copy(db, "u.db");
    sqlite3_exec(c, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(c);
    snprintf(db, sizeof db, "%s", name);
    struct sh_stored_run *runs = NULL;
    int n = 0;
    struct sh_store *s = sh_store_open_read_only(db, &e);
    CU_ASSERT_FATAL(s && !sh_store_runs(s, &runs, &n, &e) && n == 1);
    CU_ASSERT(!sh_store_check_pages(s, &e) && access(scratch_path("u.db-journal"), F_OK));
    sh_stored_runs_free(runs, n);
    sh_store_close(s);
}

/* Another store has the name by now, and a journal. */
static void moved_away(void)
{
    fresh();
    unsigned char done[6] = {0};
    char old[2200];
    snprintf(old, sizeof old, "%s-old", db);
    struct sh_store *s = sh_store_create(db, &e);
    CU_ASSERT_FATAL(s && sh_store_begin(s, &small_run, "k", small_sequences, 2, done, &e) == 1 && !rename(db, old));
    struct sh_store *other = sh_store_create(db, &e);
    CU_ASSERT_FATAL(other && sh_store_begin(other, &small_run, "k", small_sequences, 2, done, &e) == 1);
    sh_store_close(other);
    sqlite3 *c;
    begin_change(&c, "DELETE");
    CU_ASSERT(next_to("-journal"));
    sh_store_close(s);
    CU_ASSERT(next_to("-journal"));
    sqlite3_exec(c, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(c);
    CU_ASSERT(!next_to("-journal") && ask_store(db, "SELECT count(*) FROM run") == 1);
}

/* ---- several programs ---- */

enum { BLOB = 1 << 20, HEADS = 16, QUEUE = 64 << 20, LAYERS = 3, SEQUENCES = 1 << 16 };

static struct sh_batch batch(int number)
{
    struct sh_batch b = {.sequence = number / LAYERS, .layer = 1 + number % LAYERS};
    for (int k = 0; k < HEADS; k++) {
        struct sh_block block = {.kind = SH_BLOCK_SCORES, .head = k, .n_rows = 1, .codec = SH_CODEC_LOG8,
                                 .blob = xmalloc(BLOB), .bytes = BLOB};
        memset(block.blob, number, BLOB);
        sh_batch_add(&b, block);
    }
    return b;
}

static int push_for(struct sh_store *s, int id, double seconds)
{
    struct sh_writer *w = sh_writer_begin(s, id, QUEUE, &e);
    double until = sh_now_s() + seconds;
    int bad = !w;
    for (int i = 0; !bad && sh_now_s() < until; i++) {
        struct sh_batch b = batch(i);
        bad = sh_writer_push(w, &b, &e);
    }
    return !w || sh_writer_end(w, &e) || bad;
}

/* One transaction after the other, without a moment in between. */
static int write_for_ever(struct sh_store *s, int id)
{
    struct sh_batch b[2] = {batch(0), batch(1)};
    const struct sh_batch *at[2] = {&b[0], &b[1]};
    for (int i = 0;; i += 2) {
        for (int k = 0; k < 2; k++) {
            b[k].sequence = (i + k) / LAYERS;
            b[k].layer = 1 + (i + k) % LAYERS;
        }
        if (sh_store_write(s, id, at, 2, &e))
            return -1;
    }
}

/* For so many seconds, or until it is killed. */
static void write_on(double seconds)
{
    struct sh_trace_sequence *many = xcalloc(SEQUENCES, sizeof *many);
    unsigned char *done = xcalloc(SEQUENCES, LAYERS);
    for (int i = 0; i < SEQUENCES; i++)
        many[i] = (struct sh_trace_sequence){.source = small_sequences[1].source, .n_tokens = 1,
                                             .tokens = small_sequences[1].tokens};
    struct sh_store *s = sh_store_create(db, &e);
    int id = s ? sh_store_begin(s, &small_run, "k", many, SEQUENCES, done, &e) : -1;
    int bad = id < 0 || (seconds > 0 ? push_for(s, id, seconds) : write_for_ever(s, id));
    sh_store_close(s);
    if (bad)
        printf("# %s\n", e.text);
    fflush(stdout);
    _exit(bad);
}

/* A process of its own, since locks are a process's; gives its id once it has committed something. */
static pid_t start_writer(double seconds)
{
    fresh();
    fflush(stdout);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (!child) {
        alarm(120);                                     /* whatever becomes of the test */
        write_on(seconds);
    }
    double until = sh_now_s() + 30;
    for (int n = 0; !n && sh_now_s() < until; usleep(1000)) {
        struct sh_store *s = access(db, F_OK) ? NULL : sh_store_open(db, &e);
        n = s && !sh_store_is_empty(s);
        sh_store_close(s);
    }
    return child;
}

static int count_blocks(void *to, const struct sh_block *b, struct sh_err *err)
{
    (void)err;
    *(int *)to += b->bytes == BLOB;
    return 0;
}

static void readers_get_in(void)
{
    pid_t child = start_writer(0);
    struct sh_store *s = sh_store_open(db, &e);
    CU_ASSERT_FATAL(s != NULL);
    double began = sh_now_s();
    int n_done = 0, n_run = 0;
    for (int i = 0; i < 20; i++) {
        struct sh_stored_run *runs = NULL;
        int blocks = 0;
        CU_ASSERT_FATAL(!sh_store_runs(s, &runs, &n_run, &e) && n_run == 1 && runs[0].n_done >= n_done);
        n_done = runs[0].n_done;
        CU_ASSERT(!sh_store_blocks(s, SH_BLOCK_SCORES, 0, 1, -1, count_blocks, &blocks, &e) && blocks == HEADS);
        sh_stored_runs_free(runs, n_run);
    }
    printf("# 20 times the runs and a layer, while layers are written without a pause: %.2f s\n", sh_now_s() - began);
    CU_ASSERT(waitpid(child, NULL, WNOHANG) == 0);
    sh_store_close(s);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    s = sh_store_open(db, &e);
    CU_ASSERT_FATAL(s && !sh_store_check_pages(s, &e));
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM scores") == HEADS * ask_store(db, "SELECT count(*) FROM done"));
}

static void results_get_in(void)
{
    pid_t child = start_writer(0);
    struct sh_store *s = sh_store_update(db, &e);
    CU_ASSERT_FATAL(s != NULL);
    double began = sh_now_s(), most = 0;
    for (int i = 0; i < 20; i++) {
        double now = sh_now_s();
        CU_ASSERT(!sh_store_results_begin(s, "replay", "{}", &e) &&
                  !sh_store_result(s, "replay", "{}", "kept_mass", -1, -1, i, &e) && !sh_store_results_end(s, &e));
        most = sh_now_s() - now > most ? sh_now_s() - now : most;
    }
    printf("# 20 times a result, while layers are written without a pause: %.2f s, %.2f s at most\n",
           sh_now_s() - began, most);
    CU_ASSERT(waitpid(child, NULL, WNOHANG) == 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sh_store_close(s);
    s = sh_store_open(db, &e);
    CU_ASSERT(s && !sh_store_check_pages(s, &e));
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT value FROM result") == 19);
}

/* A statement that stays open longer than any timeout of others: the writer waits, and loses nothing. */
static void a_long_reader_is_waited_for(void)
{
    pid_t child = start_writer(1);
    sqlite3 *c;
    sqlite3_stmt *q;
    int status = -1;
    CU_ASSERT_FATAL(sqlite3_open_v2(db, &c, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    sqlite3_busy_timeout(c, 30000);
    CU_ASSERT_FATAL(sqlite3_prepare_v2(c, "SELECT id FROM scores", -1, &q, NULL) == SQLITE_OK);
    CU_ASSERT(sqlite3_step(q) == SQLITE_ROW);
    usleep(7000000);
    CU_ASSERT(waitpid(child, NULL, WNOHANG) == 0);
    sqlite3_finalize(q);
    sqlite3_close(c);
    CU_ASSERT(waitpid(child, &status, 0) == child && status == 0);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM scores") == HEADS * ask_store(db, "SELECT count(*) FROM done"));
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"files: a journal that was left behind is not replayed", stale_journal},
        {"files: what a killed version left in WAL mode leaves it", left_in_wal},
        {"files: half a change is undone for who only reads", half_changed},
        {"files: the journal of another store of the same name stays", moved_away},
        {"a writer without a pause: readers get in", readers_get_in},
        {"a writer without a pause: results get in", results_get_in},
        {"a reader that takes its time is waited for", a_long_reader_is_waited_for},
        {0}};
    return tap_run("store_shared", tests);
}
