/* SPDX-License-Identifier: Apache-2.0 */
/* A whole trace store: a sound one is changed as the input says, then everything is read that can be. The input is
 * text, a line each:
 *     ~                first of all: the store's tables have no types, keys or other rules
 *     =T C R V         column C of row R of table T gets the value V (values[] below); numbers wrap around
 *     -T R, +T R       row R of table T goes, or is there twice
 *     @P B             byte P of the file gets the bits B turned
 *     anything else    SQL, done to the file by a SQLite without any of the program's precautions
 * Every error must name the file. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/store_fixture.h"
#include "tests/unit/scratch.h"
#include "traces/codec.h"
#include "traces/digest.h"
#include "traces/merge.h"
#include "traces/stats.h"

enum { MOST_PAGES = 2048, MOST_LENGTH = 1 << 20, STEPS = 200000, MOST_LINES = 64, MOST_NUMBERS = 4 };

struct file { unsigned char *at; size_t n; };

static struct file sound, loose, empty;
static char store[2048], merged[2048];

/* ---- the file ---- */

static struct file load(const char *path)
{
    struct file f = {xmalloc(MOST_LENGTH), 0};
    FILE *from = fopen(path, "rb");
    f.n = from ? fread(f.at, 1, MOST_LENGTH, from) : 0;
    if (!from || fclose(from) || !f.n || f.n == MOST_LENGTH)
        abort();
    return f;
}

static void make_files(void)
{
    sqlite3_vfs_register(sqlite3_vfs_find("unix-none"), 1);     /* nobody else has these files: no locks */
    snprintf(store, sizeof store, "%s", scratch_path("t.db"));
    snprintf(merged, sizeof merged, "%s", scratch_path("merged.db"));
    fixture_make(store);
    sound = load(store);
    fixture_loosen(store);
    loose = load(store);
    fixture_empty(merged);
    empty = load(merged);
}

static void put_file(const char *name, const struct file *f)
{
    static const char *const ending[] = {"-wal", "-shm", "-journal"};
    for (int i = 0; i < 3; i++) {
        char *next_to = xasprintf("%s%s", name, ending[i]);
        unlink(scratch_path(next_to));
        free(next_to);
    }
    scratch_write(name, f->at, f->n);
}

/* ---- what an input does to it ---- */

static const char *const tables[] = {"model", "run", "sequence", "done", "scores", "vectors", "head_stats", "result",
                                     "typed", "plan", "shard", "partial", "held"};
enum { TABLES = sizeof tables / sizeof *tables };

/* %s is the column. */
static const char *const values[] = {
    "NULL", "0", "1", "-1", "2", "2147483647", "2147483648", "-2147483648", "1099511627776", "9223372036854775807",
    "-9223372036854775807 - 1", "0.5", "1e308", "9e999", "-9e999", "''", "'abc'", "'1'", "char(97, 0, 98)",
    "printf('%%*c', 70000, 'x')", "x''", "x'00'", "x'28b52ffd0000'", "zeroblob(70000)", "CAST(%s AS TEXT)",
    "CAST(%s AS BLOB)", "%s + 1", "%s - 1", "-%s", "%s * 1000003", "substr(%s, 2)", "%s || %s", "'{}'", "'{\"a\":'",
    "'full'", "'sparse'", "'summary'", "'q'", "x'ff' || %s", "char(233, 8364, 27) || x'c328'"};

static void execute(sqlite3 *db, const char *sql)
{
    sqlite3_exec(db, sql, NULL, NULL, NULL);    /* what fails changes nothing */
}

/* Those of stores as they are made have no rowid in four tables: all their rows are changed. */
static char *where(const char *table, unsigned row)
{
    return xasprintf(" WHERE rowid IN (SELECT rowid FROM %s LIMIT 1 OFFSET %u %% max(1, (SELECT count(*) FROM %s)))",
                     table, row, table);
}

static int has_rowid(sqlite3 *db, const char *table)
{
    char *sql = xasprintf("SELECT rowid FROM %s", table);
    sqlite3_stmt *q = NULL;
    int has = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK;
    sqlite3_finalize(q);
    free(sql);
    return has;
}

static char *column_name(sqlite3 *db, const char *table, unsigned column)
{
    char *sql = xasprintf("SELECT * FROM %s LIMIT 0", table);
    sqlite3_stmt *q = NULL;
    sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    int n = sqlite3_column_count(q);
    char *name = xasprintf("\"%s\"", n ? sqlite3_column_name(q, (int)(column % (unsigned)n)) : "rowid");
    sqlite3_finalize(q);
    free(sql);
    return name;
}

static void set_cell(sqlite3 *db, const unsigned at[MOST_NUMBERS])
{
    const char *table = tables[at[0] % TABLES], *value = values[at[3] % (sizeof values / sizeof *values)];
    char *name = column_name(db, table, at[1]), *place = has_rowid(db, table) ? where(table, at[2]) : xstrdup("");
    char *to = sqlite3_mprintf(value, name, name);
    char *sql = xasprintf("UPDATE OR IGNORE %s SET %s = %s%s", table, name, to, place);
    execute(db, sql);
    sqlite3_free(to);
    free(sql);
    free(place);
    free(name);
}

static void change_row(sqlite3 *db, int twice, const unsigned at[MOST_NUMBERS])
{
    const char *table = tables[at[0] % TABLES];
    char *place = has_rowid(db, table) ? where(table, at[1]) : xstrdup("");
    char *sql = twice ? xasprintf("INSERT OR IGNORE INTO %s SELECT * FROM %s%s", table, table, place)
                      : xasprintf("DELETE FROM %s%s", table, place);
    execute(db, sql);
    free(sql);
    free(place);
}

static void turn_bits(FILE *f, const unsigned at[MOST_NUMBERS])
{
    long size = fseek(f, 0, SEEK_END) ? 0 : ftell(f), place = size > 0 ? (long)(at[0] % (unsigned long)size) : 0;
    int c = size > 0 && !fseek(f, place, SEEK_SET) ? getc(f) : EOF;
    if (c != EOF && !fseek(f, place, SEEK_SET))
        putc((c ^ (int)at[1]) & 0xff, f);
}

/* No other file, no end of time. */
static int allow(void *to, int what, const char *a, const char *b, const char *c, const char *d)
{
    (void)to, (void)a, (void)b, (void)c, (void)d;
    return what == SQLITE_ATTACH || what == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

static int stop(void *to)
{
    (void)to;
    return 1;
}

static sqlite3 *open_plainly(void)
{
    sqlite3 *db;
    if (sqlite3_open(store, &db))
        abort();
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MOST_LENGTH);
    sqlite3_set_authorizer(db, allow, NULL);
    char *sql = xasprintf("PRAGMA max_page_count = %d; PRAGMA synchronous = 0; PRAGMA foreign_keys = 0", MOST_PAGES);
    execute(db, sql);
    free(sql);
    return db;
}

static void take_numbers(const char *line, unsigned at[MOST_NUMBERS])
{
    char *end;
    for (int i = 0; i < MOST_NUMBERS; i++, line = end)
        at[i] = (unsigned)strtoul(line, &end, 10);
}

static void change(char **line, int n)
{
    sqlite3 *db = open_plainly();
    unsigned at[MOST_NUMBERS];
    for (int i = 0; i < n; i++) {
        sqlite3_progress_handler(db, STEPS, stop, NULL);
        take_numbers(line[i] + (line[i][0] != '\0'), at);
        if (line[i][0] == '=')
            set_cell(db, at);
        else if (line[i][0] == '-' || line[i][0] == '+')
            change_row(db, line[i][0] == '+', at);
        else if (line[i][0] != '@' && line[i][0] != '~')
            execute(db, line[i]);
    }
    execute(db, "ROLLBACK");
    sqlite3_close(db);
    FILE *f = fopen(store, "r+b");
    for (int i = 0; i < n && f; i++)
        if (line[i][0] == '@') {
            take_numbers(line[i] + 1, at);
            turn_bits(f, at);
        }
    if (f)
        fclose(f);
}

/* ---- readers ---- */

/* Where an error may come to a user's eyes. */
static int sound_error(int bad, const struct sh_err *e)
{
    if (bad && !strstr(e->text, store) && !strstr(e->text, merged)) {
        fprintf(stderr, "no file in: %s\n", e->text);
        abort();
    }
    return bad;
}

static int take_row(void *to, const struct sh_row *r)
{
    float *sum = to;
    for (int i = 0; i < (r->sparse ? r->n_stored : r->n); i++)
        *sum += r->score[i];
    return 0;
}

static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    unsigned char *plain;
    size_t n;
    float *x, *sum = to;
    struct sh_stats *s;
    if (b->kind == SH_BLOCK_SCORES)
        return sh_codec_rows_any(b, take_row, sum, e);
    if (b->kind == SH_BLOCK_VECTORS) {
        x = sh_codec_all_floats(b, &n, e);
        *sum += x && n ? x[n - 1] : 0;
        free(x);
        return x ? 0 : -1;
    }
    if (sh_codec_unbytes(b->blob, b->bytes, MOST_LENGTH, &plain, &n, e))
        return -1;
    int bad = sh_stats_unpack(plain, n, &s, e);
    if (!bad)
        sh_stats_free(s);
    free(plain);
    return bad;
}

static int read_sequence(struct sh_store *s, const struct sh_stored_run *r, const struct sh_stored_sequence *q,
                         struct sh_err *e)
{
    int32_t *tokens = NULL;
    int n = 0, bad = sound_error(sh_store_tokens(s, q->id, &tokens, &n, e), e), most = r->first_layer + 3;
    free(tokens);
    for (int layer = r->first_layer; layer <= r->last_layer && layer < most; layer++) {
        float sum = 0;
        struct sh_batch kept = {0};
        bad |= sound_error(sh_store_is_done(s, q->id, layer, e) < 0, e);
        for (int kind = SH_BLOCK_SCORES; kind <= SH_BLOCK_STATS; kind++) {
            bad |= sh_store_blocks(s, kind, q->id, layer, -1, take_block, &sum, e);
            if (kind == SH_BLOCK_SCORES)
                bad |= sh_store_blocks(s, kind, q->id, layer, -1, sh_store_keep, &kept, e);
        }
        sh_batch_clear(&kept);
    }
    return bad;
}

static int read_runs(struct sh_store *s, struct sh_err *e)
{
    struct sh_stored_run *run;
    struct sh_stored_sequence *q;
    int n, n_q, bad = 0;
    if (sound_error(sh_store_runs(s, &run, &n, e), e))
        return -1;
    for (int i = 0; i < n; i++) {
        bad |= sound_error(sh_store_scores(s, run[i].id, e) < 0, e) |
               sound_error(sh_store_blob_bytes(s, run[i].id, e) < 0, e);
        if (sound_error(sh_store_sequences(s, run[i].id, &q, &n_q, e), e)) {
            bad = -1;
            continue;
        }
        for (int k = 0; k < n_q; k++)
            bad |= read_sequence(s, &run[i], &q[k], e);
        sh_stored_sequences_free(q, n_q);
    }
    sh_stored_runs_free(run, n);
    return bad;
}

static int take_result(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    (void)e;
    *(size_t *)to += strlen(r->settings) + strlen(r->metric) + (r->layer > 0) + (r->head > 0) + (r->value > 0);
    return 0;
}

static void take_line(void *to, const char *line)
{
    *(size_t *)to += strlen(line);
}

static void take_measured(void *to, const char *settings, const struct sh_measured *on)
{
    *(size_t *)to += strlen(settings) + strlen(on->name);
}

static int read_rest(struct sh_store *s, struct sh_err *e)
{
    static const char *const command[] = {"replay", "eval", "persistence"};
    struct sh_shard *shard = NULL;
    struct sh_inventory *held = NULL;
    struct sh_digest digest;
    struct sh_digest_counts counts;
    unsigned char part[FIXTURE_PART_BYTES];
    size_t length = 0;
    int n = 0, n_held = 0, has[FIXTURE_PART + 1] = {0}, bad = 0;
    for (int i = 0; i < 3; i++)
        bad |= sound_error(sh_store_read_results(s, command[i], NULL, take_result, &length, e), e) |
               sound_error(sh_store_read_typed(s, command[i], take_line, &length, e), e) |
               sound_error(sh_store_read_measured(s, command[i], take_measured, &length, e), e);
    bad |= sound_error(sh_shard_list(s, &shard, &n, e), e);
    bad |= sound_error(sh_inventory_list(s, shard, n, &held, &n_held, e), e) ||
           sound_error(sh_inventory_look(s, held, n_held, e), e);
    free(shard);
    free(held);
    bad |= sound_error(sh_partial_list(s, FIXTURE_JOB, FIXTURE_PART + 1, has, 1, e) < 0, e);
    if (has[FIXTURE_PART])
        bad |= sound_error(sh_partial_get(s, FIXTURE_JOB, FIXTURE_PART, part, sizeof part, e), e);
    return bad | sound_error(sh_digest_store(s, &digest, &counts, e), e);
}

static int read_all(void)
{
    struct sh_err e;
    struct sh_store *s = sh_store_open(store, &e);
    if (sound_error(!s, &e))
        return -1;
    int bad = sound_error(sh_store_check_pages(s, &e), &e);
    bad |= read_runs(s, &e) | read_rest(s, &e);
    sh_store_close(s);
    return bad;
}

static int merge_all(void)
{
    struct sh_err e;
    put_file("merged.db", &empty);
    struct sh_store *out = sh_store_create(merged, &e);
    struct sh_merge *m = out ? sh_merge_begin(out, &e) : NULL;
    if (!m)
        abort();
    int bad = sound_error(sh_merge_look(m, store, &e), &e) || sound_error(sh_merge_add(m, store, &e), &e) ||
              sound_error(sh_merge_add(m, store, &e), &e);      /* again: what is the same is left alone */
    sh_merge_end(m);
    sh_store_close(out);
    return bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xmalloc(size + 1), *line[MOST_LINES];
    int n = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text; n < MOST_LINES && at;) {
        char *end = strchr(at, '\n');
        line[n++] = at;
        if (end)
            *end = '\0';
        at = end ? end + 1 : NULL;
    }
    if (!sound.at)
        make_files();
    put_file("t.db", line[0][0] == '~' ? &loose : &sound);
    change(line, n);
    fuzz_accepted += !(read_all() | merge_all());
    fixture_write_to(store);
    free(text);
    return 0;
}
