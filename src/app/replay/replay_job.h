/* SPDX-License-Identifier: Apache-2.0 */
/* The work of shears replay: policies under budgets, as rows; by one process, one shard of an array job, or several
 * ranks. */
#ifndef SH_APP_REPLAY_JOB_H
#define SH_APP_REPLAY_JOB_H

#include "src/app/plan/allot.h"
#include "src/jobs/mpi_job.h"
#include "src/jobs/shard_option.h"
#include "src/app/replay/replay_results.h"

enum { SH_REPLAY_POLICIES = 64 };

struct sh_replay_job {
    struct sh_policy_spec spec[SH_REPLAY_POLICIES];
    struct sh_budget budget[SH_MAX_BUDGETS];
    struct sh_replay_request q;
    struct sh_allocator_spec allocator;
    struct sh_stored_run *runs;
    int n_run;
    struct sh_measured on;              /* their sequences                                        */
    struct sh_replay_row *row;          /* [n_spec * n_budget] */
    char **settings;
    int n_row;
    int force;                          /* also rows whose results the store has */
    struct sh_part shard;
    struct sh_job cluster;
    struct sh_store *store;             /* the store that is read */
};

/* The runs of q.run. */
int sh_replay_work_runs(struct sh_replay_job *w, struct sh_err *e);

/* Rows for the policies and budgets of the request, without figures. */
void sh_replay_work_rows(struct sh_replay_job *w);
void sh_replay_work_clear(struct sh_replay_job *w);

/* Is that row of this shard? */
int sh_replay_work_is_own(const struct sh_replay_job *w, int row);

/* Replays the rows that are not known, those of this shard. */
int sh_replay_work_alone(struct sh_replay_job *w, struct sh_err *e);

/* All rows that the store does not know, by all ranks; on rank 0 they are filled and kept in the store `path`. */
int sh_replay_work_ranks(struct sh_replay_job *w, const char *path, struct sh_err *e);

/* The figures of rows [from, from + n) that were replayed now, into a store: all of them or none. */
int sh_replay_work_keep(const struct sh_replay_job *w, int from, int n, struct sh_store *s, struct sh_err *e);

/* ---- layers shared among ranks: replay_ranks.c ---- */

/* A unit is some neighbouring layers of some sequences, under all policies and budgets, so what is stored is decoded
 * once in the whole cluster. Each rank keeps the sums of its layers in its own store; when all are there, rank 0 adds
 * them up in the order of a single process, to the same bits. */
enum { SH_REPLAY_JOB = 24 };

struct sh_replay_share {
    struct sh_job *c;
    struct sh_store *s;                 /* the store that is read                                 */
    /* What is to be replayed (n_spec 0: nothing), and a name that all ranks give the same request. Rank 0 asks before
     * and after it has joined leftovers into the store, the others when they have their first unit. */
    int (*ask)(void *to, struct sh_replay_request *q, char *job, struct sh_err *e);
    /* On rank 0: the whole, to be kept. */
    int (*take)(void *to, const struct sh_replay_result *r, struct sh_err *e);
    void *to;
};

/* On every rank; `into` is the store of rank 0, NULL elsewhere. */
int sh_replay_share(const struct sh_replay_share *a, struct sh_store *into, struct sh_err *e);

#endif
