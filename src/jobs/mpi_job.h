/* SPDX-License-Identifier: Apache-2.0 */
/* A command that mpirun or srun started as several ranks: which rank this is, the store that it writes
 * (FILE.rank-0003 next to --db), and how rank 0 joins the stores. A single process is rank 0 of 1.
 *
 * Ranks share only the folder of --db. Rank 0's store FILE is the only one that remains: the stores of other ranks,
 * of this job or of an earlier one that was killed, are merged into it in order of rank and then removed. */
#ifndef SH_JOBS_MPI_JOB_H
#define SH_JOBS_MPI_JOB_H

#include "src/base/common.h"
#include "src/jobs/shard_option.h"
#include "src/ranks/ranks.h"
#include "traces/store.h"

struct sh_job {
    const struct sh_ranks *ranks;       /* NULL: alone                                            */
    struct sh_rank_place me;
    struct sh_common common;            /* the command's, with this rank's threads, device, quiet */
    const char *db;
    double timeout_s;
    /* Set by the command as soon as it has entered: */
    int shares;                         /* ranks will ask rank 0 for units: if it fails earlier, it tells them */
    int in_line;                        /* they wait for each other: a rank that fails before the start ends all */
    int lost;                           /* ranks that did not finish, as far as is known here */
    int is_orphan;                      /* rank 0 is gone                                         */
    struct sh_heartbeat *patience;      /* rank 0 works on its own; NULL: messages pass           */
    int claimed;                        /* rank 0: the store is this job's, and so are all ranks' */
    struct sh_store *own;               /* store of this rank, once it has a unit                 */
    /* For figures over all units together (traces/shard_partial.c). Ranks' stores with parts of this job remain until
     * rank 0 has added them up: join, after the last unit, gets the stores' names in order of rank. */
    const char *job;                    /* NULL: none                                             */
    int (*join)(void *to, char *const *path, int n, struct sh_err *e);
    void *join_to;
};

enum { SH_RANK_TIMEOUT_S = 600 };

/* At the start of a command. With --shard ("3/8"; NULL: none) it runs alone, else it joins the other ranks, if any.
 * db: the command's store, which both need. */
int sh_job_enter(struct sh_job *c, const struct sh_common *common, const char *db, const char *shard,
                 struct sh_part *part, double timeout_s, struct sh_err *e);

/* At the end of a command: reports `bad` with e to rank 0, which shows the errors of all. Returns what the command
 * should return. */
int sh_job_leave(struct sh_job *c, int bad, struct sh_err *e);

/* Rank 0 works on its own for any length of time; the others get heartbeats until messages pass again. A command that
 * enters is in this state. Does nothing on other ranks. */
void sh_job_apart(struct sh_job *c);
void sh_job_together(struct sh_job *c);

static inline int sh_job_is_first(const struct sh_job *c) { return c->me.rank == 0; }

/* The store of this rank, created on the first call. NULL: e says why. */
struct sh_store *sh_job_own(struct sh_job *c, struct sh_err *e);

/* Closes this rank's store. Rank 0 merges all ranks' stores into `into` and removes them, except those with parts of
 * c->job. The first time, before any work, `into` is claimed for this job (traces/wait.c), and a rank's store
 * that is in use is refused. */
void sh_job_close(struct sh_job *c);
int sh_job_gather(struct sh_job *c, struct sh_store *into, struct sh_err *e);

/* Sets has[part] = 1 for the parts of c->job, 0 to n - 1, that some rank's store has. */
int sh_job_parts(const struct sh_job *c, int n, int *has, struct sh_err *e);

/* The work, by all ranks; then each closes its store, and rank 0 joins and merges them (merges even after an
 * error). q: without timeout_s and quiet, which are the job's. */
int sh_job_run(struct sh_job *c, struct sh_work_queue q, struct sh_store *into, struct sh_err *e);

#endif
