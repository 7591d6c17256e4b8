/* SPDX-License-Identifier: Apache-2.0 */
/* A list of persistence cells for persistence, plot and demo, collected from a store in one pass if possible and then
 * looked up by cell. */
#ifndef SH_APP_PERSISTENCE_PERSISTENCE_STUDY_H
#define SH_APP_PERSISTENCE_PERSISTENCE_STUDY_H

#include "planner/theory/persistence.h"
#include "traces/store.h"

/* Every finished head of the chosen runs, once, whatever was recorded (full scores, sparse scores, statistics), for all
 * cells together. */
struct sh_collect {
    int n_cell;
    const struct sh_persistence_cell *cell;
    int window;                         /* rows of the low counts                                 */
    int threads, quiet;
    int run;                            /* 0: all runs, which must then be of one model           */
    /* results */
    struct sh_persistence *p;
    char *model, *weights;
    int n_layer, n_head, n_sequence, n_unfinished;
    long long n_tokens;
};

/* Can every run of the store give this cell? Runs of full scores always can. */
int sh_collect_can(struct sh_store *s, int run, const struct sh_persistence_cell *c, int window, struct sh_err *e);

int sh_collect_run(struct sh_collect *g, struct sh_store *s, struct sh_err *e);
void sh_collect_free(struct sh_collect *g);

/* ---- all cells ---- */

enum { SH_STUDY_CELLS = 512 };

struct sh_study {
    struct sh_persistence_cell cell[SH_STUDY_CELLS];
    int n_cell;
    int window, threads, quiet, run;
    /* results */
    struct sh_collect part[2];          /* sparse stores give some thresholds from rows, others from statistics */
    int n_part;
    struct sh_persistence_cell part_cell[2][SH_STUDY_CELLS];
    short part_of[SH_STUDY_CELLS], index_of[SH_STUDY_CELLS];
};

/* The cell's index, added if it is new; -1 when there are too many. */
int sh_study_add(struct sh_study *y, const struct sh_alpha *alpha, int recent, double split);

/* The same, but *cell is -1 if the store's records cannot give the cell. Returns -1 if the store cannot be read. */
int sh_study_add_if(struct sh_study *y, struct sh_store *s, const struct sh_persistence_cell *c, int *cell,
                    struct sh_err *e);

int sh_study_run(struct sh_study *y, struct sh_store *s, struct sh_err *e);
void sh_study_free(struct sh_study *y);

/* Figures of a cell: SH_N_FIGURE numbers. Layers and heads are those of part[0].p. */
const double *sh_study_all(const struct sh_study *y, int cell);
const double *sh_study_layer(const struct sh_study *y, int cell, int i_layer);
const double *sh_study_head(const struct sh_study *y, int cell, int i_layer, int i_head);
int sh_study_n_head(const struct sh_study *y, int cell, int i_layer);
int sh_study_min_head(const struct sh_study *y, int cell, int i_layer);

#endif
