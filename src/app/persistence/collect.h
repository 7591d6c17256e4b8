/* SPDX-License-Identifier: Apache-2.0 */
/* From a trace store to persistence figures: every finished head of the chosen runs, once, whatever
 * was recorded (full scores, sparse scores, statistics), for all cells in one pass. */
#ifndef SH_APP_PERSISTENCE_COLLECT_H
#define SH_APP_PERSISTENCE_COLLECT_H

#include "planner/theory/persistence.h"
#include "traces/store.h"

struct sh_collect {
    int n_cell;
    const struct sh_persistence_cell *cell;
    int window;                         /* of the low counts                                      */
    int threads, quiet;
    int run;                            /* 0: all runs, which must then be of one model           */
    /* results */
    struct sh_persistence *p;
    char *model, *weights;
    int n_layer, n_head, n_sequence, n_unfinished;
    long long n_tokens;
};

/* Can every run of the store answer this cell? Runs of full scores always can. */
int sh_collect_can(struct sh_store *s, int run, const struct sh_persistence_cell *c, int window, struct sh_err *e);

int sh_collect_run(struct sh_collect *g, struct sh_store *s, struct sh_err *e);
void sh_collect_free(struct sh_collect *g);

#endif
