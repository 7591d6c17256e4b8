/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a store that a command works on. */
#ifndef SH_APP_COMMON_RUNS_H
#define SH_APP_COMMON_RUNS_H

#include "traces/store.h"

/* The run of that id, or all runs (0), which must then be of one model. Runs whose rows are not causal are refused,
 * since no cache grows token by token in them. Free with sh_stored_runs_free. */
int sh_runs_choose(struct sh_store *s, int run, struct sh_stored_run **out, int *n, struct sh_err *e);

/* The same with the sequences of each. */
struct sh_runs {
    struct sh_stored_run *run;
    struct sh_stored_sequence **sequence;       /* [n]                                                */
    int *n_sequence;                            /* [n]                                                */
    int n;
};

int sh_runs_open(struct sh_runs *r, struct sh_store *s, int run, struct sh_err *e);     /* -1: r is {0} */
void sh_runs_close(struct sh_runs *r);                                                 /* {0} is fine  */

/* -1: they do not all hold the same layers and number of KV heads; the hint is to select one. */
int sh_runs_agree(const struct sh_runs *r, struct sh_store *s, struct sh_err *e);

/* Sets the hint for a run that was recorded without what is needed: `how` to trace it, "with --record full". It
 * mentions --run, since a store keeps the old run next to a new one. Returns -1. */
int sh_runs_hint(struct sh_err *e, const char *how);

#endif
