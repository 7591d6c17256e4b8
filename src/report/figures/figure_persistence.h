/* SPDX-License-Identifier: Apache-2.0 */
/* The study of each store that the persistence figures are drawn of. */
#ifndef SH_REPORT_FIGURES_FIGURE_PERSISTENCE_H
#define SH_REPORT_FIGURES_FIGURE_PERSISTENCE_H

#include "src/app/persistence/persistence_study.h"

enum { SH_FIGURE_ALPHAS = 4, SH_FIGURE_RECENTS = 4 };

struct sh_figure_trace {                /* one store                                              */
    struct sh_study study;
    int cell[SH_FIGURE_ALPHAS][SH_FIGURE_RECENTS];      /* cells of the study; -1: the store cannot answer it */
    char *label;                        /* "opt-6.7b, random weights"                             */
};

/* The cell of a panel: literal (beyond 0) or beyond recency (1); -1: the store cannot answer it. */
int sh_figure_cell(const struct sh_figure_trace *t, int beyond);

#endif
