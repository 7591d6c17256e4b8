/* SPDX-License-Identifier: Apache-2.0 */
/* See db.h and store.h. */
#include "traces/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/schema.inc"

int sh_db_fail(struct sh_store *s, const char *doing, struct sh_err *e)
{
    if (s->spent)
        return sh_fail(e, "%s: damaged: %s: more rows than a file of this size can hold", s->path, doing);
    int code = sqlite3_extended_errcode(s->db), system = sqlite3_system_errno(s->db), kind = code & 0xff;
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED)
        sh_fail(e, "%s: %s: locked by another program for too long", s->path, doing);
    else if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
        sh_fail(e, "%s: %s: the store has that row already (%s)", s->path, doing,
                strchr(sqlite3_errmsg(s->db), ':') ? strchr(sqlite3_errmsg(s->db), ':') + 2 : "");
    else
        sh_fail(e, "%s: %s: %s%s%s", s->path, doing, sqlite3_errmsg(s->db), system ? ": " : "",
                system ? strerror(system) : "");
    e->is_io = kind == SQLITE_IOERR || kind == SQLITE_FULL || kind == SQLITE_CORRUPT || kind == SQLITE_CANTOPEN ||
               kind == SQLITE_NOMEM;
    e->is_locked = kind == SQLITE_BUSY || kind == SQLITE_LOCKED;
    if ((code & 0xff) == SQLITE_FULL || system == ENOSPC)
        sh_hint(e, "the disk is full; committed layers are safe: free some space and run the same command again");
    else if (e->is_locked)
        sh_hint(e, s->reads ? "another program has been writing to this file for a minute: try again later"
                            : "when that program has finished, run the same command again to resume");
    else if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY || code == SQLITE_READONLY_CANTINIT)
        sh_hint(e, "a killed program left an unfinished change; to undo it, run `shears info FILE` once as a "
                "user who may write to the file and its folder");
    else if ((code & 0xff) == SQLITE_CONSTRAINT)
        sh_hint(e, "is the same command running twice? The rows of the other run are intact");
    return -1;
}

int sh_db_exec(struct sh_store *s, const char *sql, const char *doing, struct sh_err *e)
{
    sh_untrusted_begin(s);
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sh_db_fail(s, doing, e);
}

/* Nonzero: SQLite rejected one of the values. */
static int bind(sqlite3_stmt *q, const char *types, va_list args)
{
    int bad = 0;
    const void *at;
    for (int i = 1; *types; types++, i++)
        switch (*types) {
        case 'i': bad |= sqlite3_bind_int(q, i, va_arg(args, int)); break;
        case 'l': bad |= sqlite3_bind_int64(q, i, va_arg(args, long long)); break;
        case 'r': bad |= sqlite3_bind_double(q, i, va_arg(args, double)); break;     /* NaN is stored as NULL */
        case 't': bad |= sqlite3_bind_text(q, i, va_arg(args, const char *), -1, SQLITE_TRANSIENT); break;
        default:
            at = va_arg(args, const void *);
            bad |= sqlite3_bind_blob(q, i, at, va_arg(args, int), SQLITE_STATIC);
        }
    return bad;
}

static sqlite3_stmt *prepare(struct sh_store *s, struct sh_err *e, const char *sql, const char *types, va_list args)
{
    sqlite3_stmt *q = NULL;
    sh_untrusted_begin(s);
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK && !bind(q, types, args))
        return q;
    sh_db_fail(s, "preparing a query", e);
    sqlite3_finalize(q);
    return NULL;
}

sqlite3_stmt *sh_db_query(struct sh_store *s, struct sh_err *e, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *q = prepare(s, e, sql, types, args);
    va_end(args);
    return q;
}

int sh_db_bind(struct sh_store *s, sqlite3_stmt *q, struct sh_err *e, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    int bad = bind(q, types, args);
    va_end(args);
    return bad ? sh_db_fail(s, "filling in a query", e) : 0;
}

int sh_db_step(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e)
{
    int code = sqlite3_step(q);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : sh_db_fail(s, doing, e);
}

int sh_db_do(struct sh_store *s, struct sh_err *e, const char *doing, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *q = prepare(s, e, sql, types, args);
    va_end(args);
    int got = q ? sh_db_step(s, q, doing, e) : -1;
    sqlite3_finalize(q);
    return got < 0 ? -1 : 0;
}

int sh_db_begin(struct sh_store *s, const char *doing, struct sh_err *e)
{
    return sh_db_exec(s, "BEGIN IMMEDIATE", doing, e);
}

int sh_db_end(struct sh_store *s, int bad, const char *doing, struct sh_err *e)
{
    if (!bad && !sh_db_exec(s, "COMMIT", doing, e))
        return 0;
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

/* The number that the query returns, or 0; of any program's file. */
static int ask(struct sh_store *s, const char *query, int *value, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, sh_db_query(s, e, query, ""), "", "reading its first page", e);
    *value = sh_columns_next(&c) ? sh_column_int(&c, 0, INT_MIN, INT_MAX) : 0;
    return sh_columns_end(&c);
}

/* Refuse a foreign file before anything is written to it. */
static int check_owner(struct sh_store *s, int *is_new, struct sh_err *e)
{
    int n, application, version;
    if (ask(s, "SELECT count(*) FROM sqlite_schema", &n, e))
        return sqlite3_errcode(s->db) == SQLITE_NOTADB
                   ? sh_fail(e, "%s: not a SQLite database, expected a trace store made by shears trace", s->path)
               : sqlite3_errcode(s->db) == SQLITE_CORRUPT
                   ? sh_fail(e, "%s: the file is damaged or cut short; restore it from a copy", s->path)
                   : sh_db_fail(s, "reading its first page", e);
    if (ask(s, "PRAGMA application_id", &application, e) || ask(s, "PRAGMA user_version", &version, e))
        return -1;
    *is_new = n == 0 && application == 0 && version == 0;
    if (*is_new)
        return 0;
    if (application != SH_STORE_APPLICATION)
        return sh_fail(e, "%s: a database of another program (application id 0x%08x, expected 0x%08x)", s->path,
                       (unsigned)application, (unsigned)SH_STORE_APPLICATION);
    if (version < SH_STORE_VERSION || version > SH_STORE_UNEVEN)
        return sh_fail(e, "%s: store version %d, expected %d to %d: it was written by %s "
                       "shears", s->path, version, SH_STORE_VERSION, SH_STORE_UNEVEN,
                       version > SH_STORE_VERSION ? "a newer" : "an older");
    return sh_untrusted_check(s, e);
}

static int make_schema(struct sh_store *s, struct sh_err *e)
{
    char sql[128];
    static const char doing[] = "making the tables";
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", SH_STORE_APPLICATION,
             SH_STORE_VERSION);
    return sh_db_begin(s, doing, e) || sh_db_exec(s, sh_schema, doing, e) || sh_db_exec(s, sql, doing, e) ||
           sh_db_exec(s, "COMMIT", doing, e) ? -1 : 0;
}

/* SQLite's allocator without its tolerance of failure: after a failed allocation a bound text may become NULL. */
static sqlite3_mem_methods theirs;

static void *take(int bytes)
{
    void *at = theirs.xMalloc(bytes);
    if (!at)
        sh_no_memory((size_t)bytes);
    return at;
}

static void *retake(void *old, int bytes)
{
    void *at = theirs.xRealloc(old, bytes);
    if (!at)
        sh_no_memory((size_t)bytes);
    return at;
}

/* Refused when SQLite is already in use. */
static void set_up_memory(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &theirs) != SQLITE_OK)
        return;
    sqlite3_mem_methods ours = theirs;
    ours.xMalloc = take;
    ours.xRealloc = retake;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
}

void sh_store_take_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up_memory);
}

static struct sh_store *connect_to(const char *path, int flags, struct sh_err *e)
{
    struct sh_store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->writes = flags & SQLITE_OPEN_READWRITE;
    /* A name such as ":memory:" must mean a file. */
    char *plain = xasprintf("%s%s", path[0] == '/' ? "" : "./", path);
    int code = sqlite3_open_v2(plain, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    free(plain);
    if (code != SQLITE_OK) {
        sh_db_fail(s, "opening the trace store", e);
        sh_store_close(s);
        return NULL;
    }
    sh_wait_set(s);
    sqlite3_extended_result_codes(s->db, 1);
    sh_untrusted_set(s);
    return s;
}

static int exists(const char *path, struct sh_err *e)
{
    struct stat about;
    if (stat(path, &about))
        return sh_fail(e, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return sh_fail(e, "%s: not a file, expected a trace store", path);
    return 0;
}

/* Writing needs a writable folder too: SQLite keeps its journal next to the file. */
static int folder_writable(const char *path, struct sh_err *e)
{
    char *folder = xstrdup(path), *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    const char *where = slash ? folder : ".";
    char *in_it = xasprintf("%s/.", where);
    int bad = access(in_it, W_OK | X_OK)
                  ? sh_fail(e, errno == ENOENT ? "%s: folder %s does not exist" : "%s: folder %s is not writable: %s",
                            path, where, strerror(errno)) : 0;
    free(in_it);
    free(folder);
    return bad;
}

/* Remove a journal left by a crash next to a store that is gone: SQLite would replay it into the next store. */
static void forget_journals(const char *path)
{
    static const char *const ending[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        char *journal = xasprintf("%s%s", path, ending[i]);
        unlink(journal);
        free(journal);
    }
}

#define TEMPORARY ".shears-new"

/* The locked temporary file, in the same folder, in which a new store is built: of several programs that make the
 * same store, one works at a time. A killed one leaves it, the next one takes it over. -1: not available; with `wait`
 * 0, also when it does not exist or is in use. */
static int lock_temporary(const char *temporary, int wait)
{
    for (;;) {
        struct stat opened, named;
        int fd = open(temporary, wait ? O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW : O_RDWR | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        if (flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) || fstat(fd, &opened)) {
            close(fd);
            return -1;
        }
        if (!stat(temporary, &named) && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
            return fd;
        close(fd);                              /* it was removed while we waited */
    }
}

static void drop_temporary(const char *temporary, int fd)
{
    forget_journals(temporary);
    unlink(temporary);
    close(fd);
}

/* A new store gets its name only when its tables exist: whenever the program is killed, the store is either complete
 * or absent. An empty file of that name is replaced. Sets *made when this call made the file. */
static int make_new(const char *path, int *made, struct sh_err *e)
{
    char *temporary = xasprintf("%s" TEMPORARY, path);
    struct stat about;
    int fd = lock_temporary(temporary, 1), bad = fd < 0;
    if (bad)
        sh_fail(e, "%s: cannot be created: %s", path, strerror(errno));
    if (!bad && (stat(path, &about) || !about.st_size)) {       /* else another program was faster: use its file */
        struct sh_store *s = NULL;
        forget_journals(temporary);
        if (ftruncate(fd, 0))
            sh_fail(e, "%s: cannot be emptied: %s", temporary, strerror(errno));
        else
            s = connect_to(temporary, SQLITE_OPEN_READWRITE, e);
        bad = !s || sh_db_exec(s, "PRAGMA page_size = 65536", "setting it up", e) || make_schema(s, e);
        sh_store_close(s);
        forget_journals(path);
        if (!bad && rename(temporary, path))
            bad = sh_fail(e, "%s: cannot be created: %s", path, strerror(errno));
        *made = !bad;
    }
    if (fd >= 0)
        drop_temporary(temporary, fd);
    free(temporary);
    return bad ? -1 : 0;
}

void sh_store_remove_leftovers(const char *path)
{
    char *temporary = xasprintf("%s" TEMPORARY, path);
    int fd = lock_temporary(temporary, 0);
    if (fd >= 0)
        drop_temporary(temporary, fd);
    free(temporary);
}

/* For a link, an empty file that it points to is replaced. */
static int make_or_follow(const char *path, int is_link, int *made, struct sh_err *e)
{
    struct stat about;
    int there = stat(path, &about) == 0;
    if (!there && is_link && errno == ENOENT)
        return sh_fail(e, "%s: a link to a file that does not exist, expected a store, or no file", path);
    if ((there || is_link) && exists(path, e))
        return -1;
    if (there && about.st_size)
        return 0;
    char *real = there ? xrealpath(path) : NULL;
    int bad = make_new(real ? real : path, made, e);
    free(real);
    return bad;
}

/* Earlier versions wrote in WAL mode, and a killed one left the file in it. The file stays in WAL mode while such a
 * program has it open. A program killed before it changed its first page leaves a journal with nothing to undo: only
 * a change from PERSIST to DELETE removes it, under a writer's lock. */
static void set_journal(struct sh_store *s)
{
    char *journal = xasprintf("%s-journal", s->path);
    if (!access(journal, F_OK))
        sqlite3_exec(s->db, "PRAGMA journal_mode = PERSIST", NULL, NULL, NULL);
    free(journal);
    sqlite3_exec(s->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
}

struct sh_store *sh_store_create(const char *path, struct sh_err *e)
{
    struct stat named;
    int is_new, made = 0, is_link = lstat(path, &named) == 0 && S_ISLNK(named.st_mode);
    if (folder_writable(path, e) || make_or_follow(path, is_link, &made, e))
        return NULL;
    struct sh_store *s = connect_to(path, SQLITE_OPEN_READWRITE, e);
    if (!s)
        return NULL;
    s->made = made && !is_link;                 /* never remove a link */
    sh_store_remove_leftovers(path);
    if (check_owner(s, &is_new, e) || (is_new && make_schema(s, e)) ||
        sh_db_exec(s, "PRAGMA synchronous = EXTRA", "setting it up", e)) {
        s->writes = 0;                          /* do not touch it */
        sh_store_close(s);
        return NULL;
    }
    set_journal(s);
    return s;
}

static struct sh_store *open_existing(const char *path, int flags, int reads, struct sh_err *e)
{
    int is_new;
    if (exists(path, e))
        return NULL;
    struct sh_store *s = connect_to(path, flags, e);
    if (!s)
        return NULL;
    s->reads = reads;
    int bad = check_owner(s, &is_new, e);
    if (bad)
        s->writes = 0;                          /* do not touch it */
    else if (is_new)
        bad = sh_fail(e, "%s: empty file, expected a trace store made by shears trace", path);
    if (!bad)
        return s;
    sh_store_close(s);
    return NULL;
}

/* For reading, but opened writable where permitted: SQLite must write to roll back the journal of a killed writer. */
struct sh_store *sh_store_open(const char *path, struct sh_err *e)
{
    struct sh_store *s = open_existing(path, SQLITE_OPEN_READWRITE, 1, e);
    if (s && sh_db_exec(s, "PRAGMA query_only = 1", "opening it for reading", e)) {
        sh_store_close(s);
        return NULL;
    }
    if (s)
        s->writes = 0;
    return s;
}

struct sh_store *sh_store_open_read_only(const char *path, struct sh_err *e)
{
    /* Without write permission a store left half changed by a killed writer is unreadable: apply its journal first. */
    struct sh_err ignored;
    char *journal = xasprintf("%s-journal", path);
    if (!access(journal, F_OK))
        sh_store_close(open_existing(path, SQLITE_OPEN_READWRITE, 0, &ignored));
    free(journal);
    return open_existing(path, SQLITE_OPEN_READONLY, 0, e);
}

struct sh_store *sh_store_update(const char *path, struct sh_err *e)
{
    struct sh_store *s = open_existing(path, SQLITE_OPEN_READWRITE, 1, e);
    if (s)
        s->reads = 0;
    return s;
}

/* Another file may have the name by now; the pragma below would remove the journal of that one. */
static int has_moved(struct sh_store *s)
{
    int moved = 0;
    return sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}

void sh_store_close(struct sh_store *s)
{
    if (!s)
        return;
    sqlite3_finalize(s->put);
    if (s->db && s->writes && !has_moved(s))
        set_journal(s);                   /* needed when an earlier version had it open until now */
    sqlite3_close(s->db);
    if (s->claim)
        close(s->claim);
    if (s->file > 0)
        close(s->file);
    free(s->path);
    free(s);
}

/* Every commit waits for the disk, except in WAL mode. */
int sh_store_sync(struct sh_store *s, struct sh_err *e)
{
    return sh_db_exec(s, "PRAGMA wal_checkpoint(FULL)", "writing it to the disk", e);
}

void sh_store_remove(const char *path)
{
    unlink(path);
    forget_journals(path);
}

int sh_store_was_made(const struct sh_store *s)
{
    return s->made;
}

const char *sh_store_path(const struct sh_store *s)
{
    return s->path;
}

/* Blocks of layers that are not marked as done: the trace of an incomplete transaction. */
static int check_leftovers(struct sh_store *s, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT sequence, layer FROM (SELECT sequence, layer FROM scores UNION SELECT sequence, layer FROM head_stats"
        " UNION SELECT sequence, layer FROM vectors) EXCEPT SELECT sequence, layer FROM done LIMIT 1", "");
    struct sh_columns c = sh_columns_of(s, q, "", "looking for leftovers", e);
    if (sh_columns_next(&c))
        c.bad = sh_fail(e, "%s: damaged: sequence %d, layer %d has blocks but is not marked as finished", s->path,
                        sqlite3_column_int(q, 0), sqlite3_column_int(q, 1));
    return sh_columns_end(&c);
}

int sh_store_check_pages(struct sh_store *s, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "PRAGMA integrity_check(1)", "");
    struct sh_columns c = sh_columns_of(s, q, "", "checking its pages", e);
    const unsigned char *said = sh_columns_next(&c) ? sqlite3_column_text(q, 0) : NULL;
    if (said && strcmp((const char *)said, "ok"))
        c.bad = sh_fail(e, "%s: damaged: %s", s->path, (const char *)said);
    if (sh_columns_end(&c))
        return -1;
    q = sh_db_query(s, e, "PRAGMA foreign_key_check", "");
    c = sh_columns_of(s, q, "", "checking its references", e);
    if (sh_columns_next(&c))
        c.bad = sh_fail(e, "%s: damaged: row %lld of table %s refers to a missing row of %s", s->path,
                        (long long)sqlite3_column_int64(q, 1), (const char *)sqlite3_column_text(q, 0),
                        (const char *)sqlite3_column_text(q, 2));
    return sh_columns_end(&c) ? -1 : check_leftovers(s, e);
}
