/* SPDX-License-Identifier: Apache-2.0 */
/* A replay by several ranks. A unit is some neighbouring layers of some sequences, under all policies and budgets,
 * so what is stored is decoded once in the whole cluster. Each rank keeps the sums of its layers in its own store;
 * when all are there, rank 0 adds them up in the order in which one process alone does, to the same bits. */
#ifndef SH_APP_REPLAY_RANKS_H
#define SH_APP_REPLAY_RANKS_H

#include "src/jobs/mpi_job.h"
#include "src/app/replay/replay_store.h"

enum { SH_REPLAY_JOB = 24 };

struct sh_replay_share {
    struct sh_job *c;
    struct sh_store *s;                 /* that is read                                           */
    double timeout_s;
    /* What is to be replayed (n_spec 0: nothing), and a name that all who replay just that give it. Asked by
     * rank 0 before and behind its tidying up of the store, by the others when they have their first unit. */
    int (*ask)(void *to, struct sh_replay_request *q, char *job, struct sh_err *e);
    /* On rank 0: the whole, to be kept. */
    int (*take)(void *to, const struct sh_replay_result *r, struct sh_err *e);
    void *to;
};

/* On every rank; `into` is the store of rank 0, NULL elsewhere. */
int sh_replay_share(const struct sh_replay_share *a, struct sh_store *into, struct sh_err *e);

#endif
