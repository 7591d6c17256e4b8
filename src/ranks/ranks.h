/* SPDX-License-Identifier: Apache-2.0 */
/* The interface to message passing between several processes of this program, started together by mpirun or srun.
 * mpi.so is the only module that implements it; the program itself does not need MPI.
 *
 * A module exports one struct sh_ranks as SH_RANKS_SYMBOL, imports nothing from the program and formats its
 * messages with snprintf. Its functions return -1 with `why` filled on failure. Nothing is collective, so that a
 * dead rank does not stop the others. To be called from one thread of a process at a time. */
#ifndef SH_RANKS_RANKS_H
#define SH_RANKS_RANKS_H

#include <stddef.h>

#include "src/base/err.h"

enum { SH_RANKS_ABI = 1 };
enum { SH_RANKS_PATIENCE = 4 };         /* a tag: heartbeat of rank 0 */
#define SH_RANKS_SYMBOL "sh_ranks_module"

struct sh_rank_place { int rank, size, local_rank, local_size; };       /* local: on this machine    */

struct sh_ranks {
    unsigned abi;                       /* SH_RANKS_ABI                                           */
    const char *name;
    /* Before anything else; once. */
    int (*open)(struct sh_rank_place *out, char *why, size_t size);
    /* A message of at most 64 KB is copied and sent without waiting for the receiver. A larger one fails after
     * timeout_s: the receiver is dead or does not receive. Messages of one sender and tag arrive in order. */
    int (*send)(int to, int tag, const void *at, size_t bytes, double timeout_s, char *why, size_t size);
    /* Receives a message of that rank (-1: any) and tag, if there is one. 1: *bytes and *from are set; 0: none. A
     * message larger than `most` is an error. */
    int (*poll)(int from, int tag, void *at, size_t most, size_t *bytes, int *sender, char *why, size_t size);
    void (*close)(void);                /* orderly: all live ranks call it                        */
    void (*abort)(int status);          /* ends all live ranks, including this one                */
};

/* Was this process started as one of several that can communicate, by the launcher's environment variables? 0 for a
 * single process. */
int sh_ranks_are_there(void);

/* srun started several processes that cannot communicate. */
int sh_ranks_are_mute(void);

/* Loads mpi.so and opens it. NULL: e says why (SH_ABSENT if it is not built). A process that dies while the ranks start
 * or end would make the others wait for ever: after timeout_s they exit with a message. */
const struct sh_ranks *sh_ranks_open(struct sh_rank_place *place, double timeout_s, struct sh_err *e);

/* The orderly end; after timeout_s the process exits with `status` anyway. */
void sh_ranks_close(const struct sh_ranks *r, double timeout_s, int status);

/* Waits for a message of one rank as `poll` does: 0, or -1 with e filled, also if nothing comes for timeout_s. For rank
 * 0 that is counted from its last heartbeat. */
int sh_ranks_await(const struct sh_ranks *r, int from, int tag, void *at, size_t most, size_t *bytes,
                   double timeout_s, struct sh_err *e);

/* While rank 0 joins what others wrote, which may exceed any timeout, it sends a heartbeat every second, and whoever
 * waits for it (sh_ranks_await) restarts the timeout. */

/* Sends one heartbeat to ranks 1 to n - 1; with `to` [n], only to those not 0 there. */
void sh_heartbeat_tell(const struct sh_ranks *r, int n, const unsigned char *to);

/* Sends heartbeats from a thread of its own until the end; meanwhile nobody else in this process may pass messages.
 * NULL if no thread can be created: the others then wait no longer than usual. The end takes NULL. */
struct sh_heartbeat *sh_heartbeat_begin(const struct sh_ranks *r, int n);
void sh_heartbeat_end(struct sh_heartbeat *p);

/* ---- work_queue.c ----
 * Units of work handed out to ranks, largest first. Rank 0 keeps the list and takes units like the others; a rank asks
 * when it is free. Every rank reports its progress (src/base/progress.h); one without progress for timeout_s, dead or
 * hanging, is marked lost and its unit goes to another. It must be safe to do a unit twice. Units and their numbers
 * are the same on all ranks. */

struct sh_work_unit { double size; int is_done; };      /* is_done: before the work begins       */

struct sh_work_queue {
    int n;
    const struct sh_work_unit *unit;    /* [n]; read by rank 0 only                               */
    int (*run)(void *to, int unit, struct sh_err *e);
    void *to;
    double timeout_s;
    const char *what;                   /* "tracing", for the progress of all                     */
    int quiet;
};

/* Works until all units are done. On rank 0: 0, or -1 with the first error of any rank. On the others: 0 even if a unit
 * failed, since rank 0 knows; -1 if rank 0 is silent. *lost: ranks that did not finish, as far as rank 0 knew when it
 * ended this rank's work. */
int sh_work_queue_run(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_work_queue *s,
                      int *lost, struct sh_err *e);

/* Reports an error outside of a unit to rank 0, which ends the work of all. */
void sh_work_queue_failed(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_err *error);

#endif
