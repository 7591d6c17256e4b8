/* SPDX-License-Identifier: Apache-2.0 */
/* What shears replay does: policies under budgets, as rows; by one process, by one shard of an array job, or by
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
    struct sh_replay_row *row;          /* [n_spec * n_budget] */
    char **settings;
    int n_row;
    int force;                          /* what the store has the results of, too */
    double rank_timeout;
    struct sh_part shard;
    struct sh_job cluster;
    struct sh_store *store;             /* that is read                      */
};

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

#endif
