/* SPDX-License-Identifier: Apache-2.0 */
/* The seam to message passing: several processes of this program, started together by mpirun or srun, that
 * hand each other bytes. mpi.so is the one module behind it; the program itself needs no MPI.
 *
 * A module exports one struct sh_ranks as SH_RANKS_SYMBOL, imports nothing from the program and writes its
 * messages with snprintf. Its functions return -1 with `why` filled when they fail. Nothing is collective:
 * a rank that died must not stop the others. One thread of a process at a time. */
#ifndef SH_RANKS_RANKS_H
#define SH_RANKS_RANKS_H

#include <stddef.h>

#include "src/base/err.h"

enum { SH_RANKS_ABI = 1 };
enum { SH_RANKS_PATIENCE = 4 };         /* a tag: rank 0 lives, and has nothing to say (patience.h) */
#define SH_RANKS_SYMBOL "sh_ranks_module"

struct sh_rank_place { int rank, size, local_rank, local_size; };       /* local: on this machine    */

struct sh_ranks {
    unsigned abi;                       /* SH_RANKS_ABI                                           */
    const char *name;
    /* Before anything else; once. */
    int (*open)(struct sh_rank_place *out, char *why, size_t size);
    /* One of at most 64 KB is copied and goes its way without waiting, whether anybody takes it or not. A larger
     * one gives up after timeout_s: the receiver is dead or does not take it. Messages of one sender and one tag
     * arrive in order. */
    int (*send)(int to, int tag, const void *at, size_t bytes, double timeout_s, char *why, size_t size);
    /* A message of that rank (-1: of any) and tag, if there is one: 1, *bytes and *from are set; 0: none.
     * One larger than `most` is an error. */
    int (*poll)(int from, int tag, void *at, size_t most, size_t *bytes, int *sender, char *why, size_t size);
    void (*close)(void);                /* orderly: all ranks that live do it                     */
    void (*abort)(int status);          /* ends all ranks that live, this one too                 */
};

/* What the launcher says in the environment: was this process started as one of several by something that
 * lets them talk? 0 for one that stands alone. */
int sh_ranks_are_there(void);

/* srun started several processes, but without a way to talk. */
int sh_ranks_are_mute(void);

/* Loads mpi.so and opens it. NULL: e says why (status SH_ABSENT when it is not built). A process that died
 * while all start, or end, would have the others wait for ever: after timeout_s they leave with a sentence. */
const struct sh_ranks *sh_ranks_open(struct sh_rank_place *place, double timeout_s, struct sh_err *e);

/* The orderly end; after timeout_s the process exits with `status`. */
void sh_ranks_close(const struct sh_ranks *r, double timeout_s, int status);

/* Wait for a message of one rank as poll takes it: 0, or -1 with e filled, which after timeout_s says that nothing
 * came. Rank 0 has so long from its last sign of life on (patience.h). */
int sh_ranks_await(const struct sh_ranks *r, int from, int tag, void *at, size_t most, size_t *bytes,
                   double timeout_s, struct sh_err *e);

#endif
