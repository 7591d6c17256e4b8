/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work handed out to ranks, the biggest first. Rank 0 keeps the list and takes units like the others;
 * a rank asks when it is free. Every rank says how far it is as its progress moves on (src/base/progress.h);
 * one whose progress stands still for timeout_s, whether it died or hangs, is taken for lost and its unit goes
 * to another. A unit must be one that may be done twice. Units and their numbers are the same on all ranks. */
#ifndef SH_RANKS_SHARE_H
#define SH_RANKS_SHARE_H

#include "src/ranks/ranks.h"

struct sh_share {
    int n;
    const double *size;                 /* [n]: work; only rank 0 looks                           */
    const unsigned char *done;          /* [n]: not to be handed out; NULL: none. Only rank 0     */
    int (*run)(void *to, int unit, struct sh_err *e);
    void *to;
    double timeout_s;
    const char *what;                   /* "tracing", for the progress of all                     */
    int quiet;
};

/* Until all units are done. On rank 0: 0, or -1 with the first error of any rank. On the others: 0 also when a unit
 * failed, since rank 0 knows; -1 when rank 0 is silent. *lost says how many ranks did not come to the end, as far as
 * rank 0 knew when it ended this one's work. */
int sh_share_run(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_share *s, int *lost,
                 struct sh_err *e);

/* Tell rank 0 of an error outside of a unit: it ends the work of all. */
void sh_share_failed(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_err *error);

#endif
