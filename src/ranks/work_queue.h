/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work handed out to ranks, largest first. Rank 0 keeps the list and takes units like the others; a rank asks
 * when it is free. Every rank reports its progress (src/base/progress.h); one without progress for timeout_s, dead or
 * hanging, is marked lost and its unit goes to another. It must be safe to do a unit twice. Units and their numbers
 * are the same on all ranks. */
#ifndef SH_RANKS_WORK_QUEUE_H
#define SH_RANKS_WORK_QUEUE_H

#include "src/ranks/ranks.h"

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
