/* SPDX-License-Identifier: Apache-2.0 */
/* A command that mpirun or srun started as several ranks: who this one is, the store of its own that it writes
 * (FILE.rank-0003 beside --db), and how rank 0 joins them. A process that stands alone is rank 0 of 1.
 *
 * Ranks share the folder of --db and nothing else. Rank 0's store FILE is the only one that stays: what other
 * ranks left, now or in an earlier job that was killed, goes into it in order of rank, and then away. */
#ifndef SH_JOBS_CLUSTER_H
#define SH_JOBS_CLUSTER_H

#include "src/base/common.h"
#include "src/jobs/part.h"
#include "src/ranks/patience.h"
#include "src/ranks/share.h"
#include "traces/store.h"

struct sh_cluster {
    const struct sh_ranks *ranks;       /* NULL: alone                                            */
    struct sh_rank_place me;
    struct sh_common common;            /* the command's, with this rank's threads, device, silence */
    const char *db;
    double timeout_s;
    /* Set by the command as soon as it has entered: */
    int shares;                         /* ranks will ask rank 0 for units: if it fails before, it tells them */
    int in_line;                        /* they wait for each other: who fails before they start ends all of them */
    int lost;                           /* ranks that did not come to the end, as far as is known here */
    int is_orphan;                      /* rank 0 is gone                                         */
    struct sh_patience *patience;       /* rank 0 works by itself; NULL: messages pass            */
    int claimed;                        /* rank 0: the store is this job's, and so are all ranks' */
    struct sh_store *own;               /* of this rank, once it has a unit                       */
    /* For figures that are of all units together (traces/partial.h). Ranks' stores that hold parts of this job
     * stay until rank 0 has added them up: join, after the last unit, gets the stores' names in order of rank. */
    const char *job;                    /* NULL: none                                             */
    int (*join)(void *to, char *const *path, int n, struct sh_err *e);
    void *join_to;
};

enum { SH_RANK_TIMEOUT_S = 600 };
/* A command begins: --shard ("3/8", or NULL) makes it one that stands alone, else it joins the others if there are any.
 * db: the command's store, which both need. */
int sh_cluster_enter(struct sh_cluster *c, const struct sh_common *common, const char *db, const char *shard,
                     struct sh_part *part, double timeout_s, struct sh_err *e);

/* At the command's end: `bad` with e is told to rank 0, where the others' errors are shown; gives what the
 * command should return. */
int sh_cluster_leave(struct sh_cluster *c, int bad, struct sh_err *e);

/* Rank 0 does something by itself, for as long as it likes: the others hear that it lives. Until messages pass again.
 * A command that enters is apart; nothing happens on others. */
void sh_cluster_apart(struct sh_cluster *c);
void sh_cluster_together(struct sh_cluster *c);

static inline int sh_cluster_is_first(const struct sh_cluster *c) { return c->me.rank == 0; }

/* The store of this rank, made at the first call. NULL: e says why. */
struct sh_store *sh_cluster_own(struct sh_cluster *c, struct sh_err *e);

/* Closes this rank's store. Rank 0 puts all ranks' stores that are there into `into` and removes them, but for those
 * with parts of c->job. The first time, before there is work, `into` is claimed for this job (traces/claim.h), and a
 * rank's store at which somebody is at work is refused. */
void sh_cluster_close(struct sh_cluster *c);
int sh_cluster_gather(struct sh_cluster *c, struct sh_store *into, struct sh_err *e);

/* Which parts of c->job, 0 to n - 1, are in any rank's store: has[part] = 1. */
int sh_cluster_parts(const struct sh_cluster *c, int n, int *has, struct sh_err *e);

/* The work, by all ranks; then each closes its store and rank 0 joins and gathers them, the latter also after an
 * error. */
int sh_cluster_run(struct sh_cluster *c, const struct sh_share *s, struct sh_store *into, struct sh_err *e);

#endif
