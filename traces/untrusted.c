/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what a file can make its connection do. A store may come from anywhere, and a SQLite file has its own
 * schema: views, triggers, virtual tables, computed columns, cycles of pages, overlapping values. A store needs none
 * of these, so none is allowed: nothing in the file is executed, nothing that it says of itself is trusted
 * (sqlite.org/security.html), and reading takes time and memory in proportion to the file's size. */
#include "traces/column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/mem.h"
#include "src/base/progress.h"

/* SQLite counts the steps of its virtual machine: some tens per row. The smallest rows, of `done`, take eight bytes,
 * and there are few of them: a store consists of blobs. Each blob is read once, the name of a model once per run. */
enum { STEPS_A_LOOK = 1 << 18, STEPS_A_BYTE = 8, TIMES_THE_FILE = 16, LEAST_BYTES = 1 << 20,
       PAGE_BYTES = 1 << 12, TIMES_READ = 256,  /* unordered rows read pages repeatedly           */
       LEAST_LONGEST = 1 << 26 };       /* of a value; the file may grow while it is read */

static const char *const tables[] = {"model",      "run",    "sequence", "done", "scores", "vectors",
                                     "head_stats", "result", "typed",    "plan", "shard",  "partial",
                                     "held",       "measured", "sequence_sums"};

/* Size of the file, plus a WAL not yet moved into it. */
static long long file_bytes(const struct sh_store *s)
{
    struct stat about;
    char *log = xasprintf("%s-wal", s->path);
    long long n = (stat(s->path, &about) ? 0 : about.st_size) + (stat(log, &about) ? 0 : about.st_size);
    free(log);
    return n;
}

/* Pages that form a cycle give endless rows. A reader may be stopped in the middle. */
static int look(void *store)
{
    struct sh_store *s = store;
    long long most = LEAST_BYTES + file_bytes(s);
    int pages = 0, unused;
    s->steps += STEPS_A_LOOK;
    sqlite3_db_status(s->db, SQLITE_DBSTATUS_CACHE_MISS, &pages, &unused, 0);
    s->spent = s->steps / STEPS_A_BYTE > most || (long long)pages * PAGE_BYTES / TIMES_READ > most;
    return s->spent || (!s->writes && sh_interrupted());
}

void sh_untrusted_set(struct sh_store *s)
{
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_drop_modules(s->db, NULL);          /* no virtual tables; page checks do not need them */
    sqlite3_exec(s->db, "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0", NULL, NULL, NULL);
    sqlite3_progress_handler(s->db, STEPS_A_LOOK, look, s);
    long long longest = file_bytes(s);
    if (!s->writes && longest < INT32_MAX)      /* no value exceeds the file */
        sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, longest > LEAST_LONGEST ? (int)longest : LEAST_LONGEST);
}

static int check_encoding(struct sh_store *s, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, sh_db_query(s, e, "PRAGMA encoding", ""), "", "reading its first page", e);
    const unsigned char *name = sh_columns_next(&c) ? sqlite3_column_text(c.q, 0) : NULL;
    if (name && strcmp((const char *)name, "UTF-8"))
        c.bad = sh_fail(e, "%s: text encoding %s, expected UTF-8", s->path, (const char *)name);
    return sh_columns_end(&c);
}

/* A computed column may expand a few bytes to a gigabyte. */
static int check_columns(struct sh_store *s, const char *table, struct sh_err *e)
{
    enum { NAME = 1, HIDDEN = 6 };
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA table_xinfo(%s)", table);
    struct sh_columns c = sh_columns_of(s, sh_db_query(s, e, sql, ""), table, "reading its tables", e);
    while (sh_columns_next(&c))
        if (sqlite3_column_int(c.q, HIDDEN)) {
            const unsigned char *name = sqlite3_column_text(c.q, NAME);
            c.bad = sh_fail(e, "%s: damaged: column %.60s of table %s is generated, expected a stored column", s->path,
                            name ? (const char *)name : "?", table);
        }
    return sh_columns_end(&c);
}

int sh_untrusted_check(struct sh_store *s, struct sh_err *e)
{
    int bad = check_encoding(s, e);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !bad; i++)
        bad = check_columns(s, tables[i], e);
    return bad;
}

void sh_untrusted_begin(struct sh_store *s)
{
    int pages, unused;
    s->steps = s->taken = 0;
    s->spent = 0;
    sqlite3_db_status(s->db, SQLITE_DBSTATUS_CACHE_MISS, &pages, &unused, 1);
}

int sh_untrusted_take(struct sh_store *s, size_t bytes, struct sh_err *e)
{
    s->taken += (long long)bytes;
    if (s->taken <= s->most)
        return 0;
    long long n = file_bytes(s);                /* it may have grown */
    s->most = LEAST_BYTES + TIMES_THE_FILE * n;
    return s->taken <= s->most ? 0 : sh_fail(e, "%s: damaged: values of %lld bytes or more in a file of %lld", s->path,
                                             s->taken, n);
}
