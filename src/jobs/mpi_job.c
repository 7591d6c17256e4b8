/* SPDX-License-Identifier: Apache-2.0 */
#include "src/jobs/mpi_job.h"

#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/load.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "traces/merge.h"

enum { MOST_RANKS = 10000 };            /* of four digits */

/* The cores that this rank may use: those it is bound to, or its share of the machine. */
static long long fair_threads(const struct sh_job *c, long long asked)
{
    cpu_set_t set;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    if (asked != all)                   /* --threads was given */
        return asked;
    long bound = sched_getaffinity(0, sizeof set, &set) ? all : CPU_COUNT(&set), share = all / c->me.local_size;
    long fair = bound < all ? bound : share;
    return fair > 0 ? fair : 1;
}

/* Ranks of one machine take its devices in turn. */
static void take_local_device(struct sh_job *c)
{
    struct sh_err ignored;
    int any = !strcmp(c->common.backend, "auto");
    const struct sh_module *m = sh_backend_look(any ? sh_backend_names[0] : c->common.backend);
    int n = m && m->backend ? m->backend->count(&ignored) : 0;
    if (n > 1)
        c->common.device = (struct sh_ordinals){.n = 1, .at = {c->me.local_rank % n}};
}

void sh_job_apart(struct sh_job *c)
{
    if (c->ranks && sh_job_is_first(c) && !c->patience)
        c->patience = sh_heartbeat_begin(c->ranks, c->me.size);
}

void sh_job_together(struct sh_job *c)
{
    sh_heartbeat_end(c->patience);
    c->patience = NULL;
}

static double patience_s(const struct sh_job *c)
{
    enum { LEAST_S = 10 };
    return c->timeout_s < LEAST_S ? LEAST_S : c->timeout_s;
}

static int join_others(struct sh_job *c, struct sh_err *e)
{
    if (sh_ranks_are_mute())
        return sh_fail(e, "srun started several tasks without MPI, so each would do all of the work"),
               sh_hint(e, "use srun --mpi=pmix, or give each task --shard I/N");
    if (!sh_ranks_are_there())
        return 0;
    c->ranks = sh_ranks_open(&c->me, patience_s(c), e);
    if (!c->ranks)
        return -1;
    if (c->me.size > 1 && !c->db)
        return sh_misused(e, "several ranks require --db FILE, into which their results are merged");
    if (c->me.size > MOST_RANKS)
        return sh_misused(e, "found %d ranks, expected at most %d", c->me.size, MOST_RANKS);
    sh_job_apart(c);
    c->common.quiet |= c->me.rank > 0;
    c->common.threads = fair_threads(c, c->common.threads);
    if (!c->common.device.n && !c->common.device.all)
        take_local_device(c);
    return 0;
}

int sh_job_enter(struct sh_job *c, const struct sh_common *common, const char *db, const char *shard,
                 struct sh_part *part, double timeout_s, struct sh_err *e)
{
    *c = (struct sh_job){.me = {.size = 1, .local_size = 1}, .common = *common, .db = db, .timeout_s = timeout_s};
    if (sh_part_parse(shard, part, e))
        return -1;
    if (part->parts && !db)
        return sh_misused(e, "--shard requires --db FILE: the shard is written next to it");
    return part->parts || common->result ? 0 : join_others(c, e);     /* ranks of another program are not ours */
}

struct sh_store *sh_job_own(struct sh_job *c, struct sh_err *e)
{
    if (!c->own) {
        char *path = xasprintf("%s.rank-%04d", c->db, c->me.rank);
        c->own = sh_store_typed(sh_store_create(path, e), c->common.line);
        free(path);
        if (c->own && sh_store_lock(c->own, e))
            sh_job_close(c);
    }
    return c->own;
}

void sh_job_close(struct sh_job *c)
{
    sh_store_close(c->own);
    c->own = NULL;
}

/* The name with glob's special characters escaped. */
static char *literal(const char *path)
{
    char *out = xmalloc(2 * strlen(path) + 1), *at = out;
    for (; *path; path++) {
        if (strchr("*?[]\\", *path))
            *at++ = '\\';
        *at++ = *path;
    }
    *at = '\0';
    return out;
}

/* All ranks' files with this ending, in order of rank; release with globfree. */
static void find_files(const struct sh_job *c, const char *ending, glob_t *found)
{
    char *name = literal(c->db), *pattern = xasprintf("%s.rank-[0-9][0-9][0-9][0-9]%s", name, ending);
    int got = glob(pattern, 0, NULL, found);
    if (got == GLOB_NOSPACE)
        sh_no_memory(strlen(pattern) + 1);
    if (got)
        *found = (glob_t){0};
    free(name);
    free(pattern);
}

/* All ranks' stores, after removing the unfinished ones of killed ranks. */
static void find_stores(const struct sh_job *c, glob_t *found)
{
    static const char unfinished[] = ".shears-new";
    find_files(c, unfinished, found);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        char *path = found->gl_pathv[i];
        path[strlen(path) - strlen(unfinished)] = '\0';
        sh_store_remove_leftovers(path);
    }
    globfree(found);
    find_files(c, "", found);
}

/* How many parts of the job a store has; sets has[] for those of the first n, unless it is NULL. */
static int parts_in(const struct sh_job *c, const char *path, int n, int *has, struct sh_err *e)
{
    struct sh_store *s = sh_store_open_read_only(path, e);
    int parts = s ? sh_partial_list(s, c->job, n, has, 1, e) : -1;
    sh_store_close(s);
    return parts;
}

int sh_job_parts(const struct sh_job *c, int n, int *has, struct sh_err *e)
{
    glob_t found;
    int bad = 0;
    find_stores(c, &found);
    for (size_t i = 0; i < found.gl_pathc && !bad; i++)
        bad = parts_in(c, found.gl_pathv[i], n, has, e) < 0;
    globfree(&found);
    return bad ? -1 : 0;
}

/* Before the work: nobody may still be writing the stores that are there. */
static int claim(struct sh_job *c, struct sh_store *into, struct sh_err *e)
{
    glob_t found;
    if (sh_store_lock(into, e))
        return -1;
    int bad = 0;
    find_files(c, "", &found);
    for (size_t i = 0; i < found.gl_pathc && !bad; i++)
        if (sh_store_is_locked(found.gl_pathv[i])) {
            bad = sh_fail(e, "%s: in use by a rank of another job", found.gl_pathv[i]);
            sh_hint(e, "if rank 0 of that job died, its ranks end within its --rank-timeout; then run the same command "
                       "again to resume");
        }
    globfree(&found);
    c->claimed = !bad;
    return bad;
}

static int gather_one(const struct sh_job *c, struct sh_merge *m, struct sh_store *into, const char *path,
                      struct sh_err *e)
{
    if (sh_merge_add(m, path, e))
        return e->hint[0] ? -1 : sh_hint(e, "%.300s was kept: it may belong to another job; merge it into another "
                                         "store or remove it", path);
    int parts = c->job ? parts_in(c, path, 0, NULL, e) : 0;
    if (parts < 0 || (!parts && sh_store_sync(into, e)))      /* always somewhere on disk */
        return -1;
    if (!parts)
        sh_store_remove(path);
    return 0;
}

/* A store that rank 0 needs is locked, most likely by a rank that hangs while reading or writing; its lock ends with
 * the process. */
static int tell_locked(const struct sh_job *c, struct sh_err *e)
{
    if (e->is_locked)
        sh_hint(e, "a hung rank may hold the lock; results are kept next to %.300s: once that process has ended, run "
                   "the same command again to resume", c->db);
    return -1;
}

int sh_job_gather(struct sh_job *c, struct sh_store *into, struct sh_err *e)
{
    glob_t found;
    if (!c->claimed && claim(c, into, e))
        return -1;
    find_stores(c, &found);
    struct sh_merge *m = found.gl_pathc ? sh_merge_begin(into, e) : NULL;
    struct sh_err mine;
    int bad = found.gl_pathc && !m, locked = 0;
    for (size_t i = 0; i < found.gl_pathc && !bad; i++) {
        const char *path = found.gl_pathv[i];
        if (!gather_one(c, m, into, path, &mine))
            continue;
        *e = mine;
        int is_its = mine.is_locked && !strncmp(mine.text, path, strlen(path));
        locked |= is_its;
        bad = !is_its;                  /* the others need not wait for its lock */
    }
    sh_merge_end(m);
    globfree(&found);
    return bad || locked ? tell_locked(c, e) : 0;
}

static int join(struct sh_job *c, struct sh_err *e)
{
    glob_t found;
    find_stores(c, &found);
    int bad = c->join(c->join_to, found.gl_pathv, (int)found.gl_pathc, e);
    globfree(&found);
    if (bad)
        return tell_locked(c, e);
    c->job = NULL;                      /* the parts are no longer needed */
    return 0;
}

int sh_job_run(struct sh_job *c, struct sh_work_queue q, struct sh_store *into, struct sh_err *e)
{
    struct sh_err later;
    q.timeout_s = c->timeout_s;
    q.quiet = c->common.quiet;
    sh_job_together(c);
    int bad = sh_work_queue_run(c->ranks, &c->me, &q, &c->lost, e);
    sh_job_apart(c);
    c->shares = 0;
    c->is_orphan = bad && !sh_job_is_first(c);
    sh_job_close(c);
    if (!sh_job_is_first(c))
        return bad;
    if (!bad && c->join)
        bad = join(c, e);
    int failed = bad && e->status == SH_FAILED;
    if (sh_job_gather(c, into, bad ? &later : e))
        bad = -1;
    if (failed && !e->hint[0] && !sh_store_is_empty(into))
        sh_hint(e, "finished work is kept %s %.300s; run the same command again to resume",
                c->job ? "next to" : "in", c->db);
    return bad;
}

enum { LEAVE = 3 };                     /* a tag: rank 0 has finished everything */

static void say(const struct sh_job *c, const struct sh_err *e)
{
    char label[40];
    snprintf(label, sizeof label, "shears: rank %d: ", c->me.rank);
    sh_say(label, e->text);
}

/* The others wait for rank 0's message, not in MPI_Finalize: a launcher may end the job when the first process exits,
 * and MPI_Finalize waits for all ranks, even for lost ones. */
static int leave_after_rank_0(const struct sh_job *c, struct sh_err *e)
{
    enum { ITS_END_S = 1 };             /* rank 0 reports to the launcher first */
    char byte;
    size_t bytes;
    if (sh_ranks_await(c->ranks, 0, LEAVE, &byte, 1, &bytes, patience_s(c), e)) {
        say(c, e);
        c->ranks->abort(SH_FAILED);
    }
    if (c->lost) {
        sleep(ITS_END_S);
        _exit(0);
    }
    sh_ranks_close(c->ranks, patience_s(c), 0);
    return 0;
}

/* One of the ranks that wait for each other fails: it must report that itself. Rank 0 reports what all find, once. */
static void end_all(const struct sh_job *c, const struct sh_err *e)
{
    enum { ITS_WORD_S = 2 };
    if (sh_job_is_first(c)) {
        sh_report_error(e);
    } else {
        sleep(ITS_WORD_S);
        say(c, e);
        if (e->hint[0])
            sh_say("hint: ", e->hint);
    }
    c->ranks->abort((int)e->status);
}

int sh_job_leave(struct sh_job *c, int bad, struct sh_err *e)
{
    struct sh_err ignored;
    sh_job_close(c);
    if (!c->ranks)
        return bad;
    sh_job_together(c);
    fflush(NULL);
    if (bad && c->shares && sh_job_is_first(c)) {       /* before any work; the others may be waiting for units */
        struct sh_work_queue nothing = {.timeout_s = c->timeout_s, .what = "ending", .quiet = 1};
        sh_work_queue_run(c->ranks, &c->me, &nothing, &c->lost, &ignored);
    }
    if (bad && c->in_line && e->status != SH_MISUSED)
        end_all(c, e);
    if (c->is_orphan) {
        say(c, e);
        c->ranks->abort(SH_FAILED);
    }
    if (c->me.rank && bad)              /* rank 0 reports it, once */
        sh_work_queue_failed(c->ranks, &c->me, e);
    if (c->me.rank)
        return leave_after_rank_0(c, e);
    if (c->lost) {                      /* they may hang: exit without waiting for them */
        sh_sayf("shears: ", "%d of %d ranks lost%s", c->lost, c->me.size, bad ? "" : "; others took over their work");
        if (bad)
            sh_report_error(e);
    }
    char byte = 0, why[200];
    for (int i = 1; i < c->me.size; i++)
        c->ranks->send(i, LEAVE, &byte, 1, c->timeout_s, why, sizeof why);
    if (c->lost)
        c->ranks->abort(bad ? (int)e->status : 0);
    sh_ranks_close(c->ranks, patience_s(c), bad ? (int)e->status : 0);
    return bad;
}
