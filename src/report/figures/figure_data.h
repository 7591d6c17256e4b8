/* SPDX-License-Identifier: Apache-2.0 */
/* From trace stores to what figures draw. */
#ifndef SH_REPORT_FIGURES_FIGURE_DATA_H
#define SH_REPORT_FIGURES_FIGURE_DATA_H

#include "plots/figure.h"

struct sh_figure_request {
    const char *const *db;              /* [n_db] */
    const char *const *plan;            /* [n_plan] plan files, for allocation */
    int n_db, n_plan;
    const char *layer, *head, *rows;    /* heatmap: comma-separated, or NULL */
    int sequence;
    double split;
    int run, threads, quiet;
};

/* What keeps the arrays of a sh_fig_data alive. */
struct sh_figure_data;

/* Fills *out with what the needs (sh_fig_needs) ask for. NULL: e says which store and why. */
struct sh_figure_data *sh_figure_data_new(int needs, const struct sh_figure_request *q, struct sh_fig_data *out,
                                          struct sh_err *e);
void sh_figure_data_free(struct sh_figure_data *d);     /* NULL is fine */

/* What the persistence figures rest on, of each store, and its cell behind the panels: literal (beyond 0) and beyond
 * recency (1); -1: the store cannot answer it. */
struct sh_study;
const struct sh_study *sh_figure_study(const struct sh_figure_data *d, int i_db, const char **label);
int sh_figure_cell(const struct sh_figure_data *d, int i_db, int beyond);

/* figure_maps.c: the score maps of each store. `own` takes memory that lives as long as the data. */
int sh_figure_maps(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                   void *keeper, struct sh_err *e);

/* figure_curves.c, figure_dropped.c, figure_plan.c: likewise, of every store or plan. */
int sh_figure_curves(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                     void *keeper, struct sh_err *e);
int sh_figure_dropped(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                      void *keeper, struct sh_err *e);
int sh_figure_plans(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                    void *keeper, struct sh_err *e);

/* figure_evals.c: what shears eval left (compression, quant); figure_drift.c: what shears drift left. */
int sh_figure_of_evals(int needs, const struct sh_figure_request *q, struct sh_fig_data *out,
                    void *(*own)(void *keeper, void *at), void *keeper, struct sh_err *e);
int sh_figure_of_drift(int needs, const struct sh_figure_request *q, struct sh_fig_data *out,
                    void *(*own)(void *keeper, void *at), void *keeper, struct sh_err *e);

/* figure_evals.c: the model that a store is of, or where it has no trace the file's name; for free(). */
struct sh_store;
char *sh_figure_name(struct sh_store *s, struct sh_err *e);

#endif
