/* SPDX-License-Identifier: Apache-2.0 */
/* From trace stores and plans to what figures draw: one loader for each kind of data, and the memory for it. */
#ifndef SH_REPORT_FIGURES_FIGURE_DATA_H
#define SH_REPORT_FIGURES_FIGURE_DATA_H

#include "plots/figure.h"

struct sh_figure_request {
    const char *const *db;              /* [n_db] */
    const char *const *plan;            /* [n_plan] plan files, for allocation */
    const char *const *name;            /* [n_name] FILE=TEXT: what a store or plan is called    */
    int n_db, n_plan, n_name;
    const char *measured_on;            /* text of the results; NULL: the only one of each store  */
    const char *layer, *head, *rows;    /* heatmap: comma-separated, or NULL */
    int sequence;
    double split;
    int run, threads, quiet;
};

/* What figures draw, and all memory that it needs. */
struct sh_figure_trace;
struct sh_figure_data {
    struct sh_fig_data out;
    const struct sh_figure_trace *trace;    /* [n_db] of the persistence figures: figure_persistence.h */
    struct sh_figure_kept { void *at; void (*release)(void *at); } *kept;   /* [n_kept] */
    int n_kept;
};

/* Fills a part of the data. */
struct sh_figure_loader {
    unsigned figures;                   /* SH_FIG_BIT of each figure whose data it fills          */
    int takes_plans;                    /* 1: --plan FILE..., 0: --db FILE...                     */
    /* The title, the settings and the data of those of `figures` that are its own; -1: e says which file and why. What
     * it allocates it hands to sh_figure_keep. */
    int (*load)(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e);
};

/* The loader of a figure; NULL: another command draws it (drawn_by). */
const struct sh_figure_loader *sh_figure_loader(const struct sh_figure *f);

struct sh_figure_data *sh_figure_data_empty(void);

/* The data of `figures`, all of one loader. NULL: e says which store and why. */
struct sh_figure_data *sh_figure_data_new(unsigned figures, const struct sh_figure_request *q, struct sh_err *e);
void sh_figure_data_free(struct sh_figure_data *d);     /* NULL is fine */

/* Memory that lives as long as the data: freed with free(), or with `release`. Return `at`. */
void *sh_figure_keep(struct sh_figure_data *d, void *at);
void *sh_figure_keep_by(struct sh_figure_data *d, void *at, void (*release)(void *at));

/* TEXT of FILE=TEXT, if FILE is this path or its name without the folder; else NULL. */
const char *sh_figure_text(const char *name, const char *path);

/* What the request calls the file at this path, else `own`; for free(), as `own` is. */
char *sh_figure_named(const struct sh_figure_request *q, const char *path, char *own);

/* A path without its folder. */
const char *sh_figure_file(const char *path);

/* "opt-6.7b", "opt-6.7b, random weights"; for free(). */
char *sh_figure_label(const char *model, const char *weights);

/* figure_evals.c: the model that a store is of, or where it has no trace the file's name; for free(). */
struct sh_store;
char *sh_figure_name(struct sh_store *s, struct sh_err *e);

#endif
