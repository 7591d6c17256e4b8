/* SPDX-License-Identifier: Apache-2.0 */
/* The results of one command, of all stores of a page; tables of them from descriptions of their columns; and parts of
 * the page that consist of such results alone. */
#ifndef SH_REPORT_RESULTS_H
#define SH_REPORT_RESULTS_H

#include "src/app/store/results.h"
#include "src/report/report.h"

/* Of all stores of a page: rows say which, by their place there. */
int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e);

/* The texts by which figures are drawn apart, since none mixes them: [n] labels, for sh_report_texts_free; one that is
 * NULL where no store has several. */
int sh_report_texts(const struct sh_report *r, const struct sh_results *s, char ***label);
void sh_report_texts_free(char **label, int n);

/* The stores of results of that text (NULL: any): db[SH_REPORT_STORES], returns how many. */
int sh_report_stores_of(const struct sh_report *r, const struct sh_results *s, const char *text, const char **db);

/* -1: no store has evaluations or replays of the text that was asked for; e names those there are. */
int sh_report_check_text(const struct sh_report *r, struct sh_err *e);

/* Are they of several stores, so that a table must say which? */
int sh_results_mixed(const struct sh_results *s);

/* A figure of the stores that contain these results, or a remark that they do not suffice for it. */
int sh_results_figure(struct sh_report *r, const struct sh_results *s, const struct sh_figure *f, struct sh_err *e);

/* "0.2", "64"; "all" for the full policy, for which a budget means nothing. */
const char *sh_result_budget(const struct sh_result_row *r);

/* "whole", "4 bits", "50 % pruned"; for free(). */
char *sh_result_weights(const struct sh_result_row *r);

/* ---- tables ---- */

/* What a cell is made of. */
struct sh_report_at {
    const struct sh_results *all;       /* the results that the table is of                       */
    const struct sh_result_row *row;
    int layer;                          /* -1, or of a table by layers                            */
    const void *more;                   /* sh_report_table.more                                   */
};

enum sh_report_cell {
    SH_CELL_END,                        /* ends a list of columns                                 */
    SH_CELL_METRIC,                     /* the stored number `key`, times `scale` unless that is 0 */
    SH_CELL_VALUE,                      /* value(at)                                              */
    SH_CELL_INT, SH_CELL_TEXT,          /* the setting `key`                                      */
    SH_CELL_FILE,                       /* the setting `key`, a path: without its folder          */
    SH_CELL_ON,                         /* the text that was measured on; no key and no label from here on */
    SH_CELL_POLICY, SH_CELL_BUDGET,
    SH_CELL_WEIGHTS,                    /* where any result is of other weights or activations than the model's */
    SH_CELL_LAYER
};

struct sh_report_column {
    enum sh_report_cell kind;
    const char *key, *label;
    int digits;
    double scale;
    double (*value)(const struct sh_report_at *at);
};

#define SH_COL_METRIC(metric, above, n) {.kind = SH_CELL_METRIC, .key = metric, .label = above, .digits = n}
#define SH_COL_SCALED(metric, above, n, by) \
    {.kind = SH_CELL_METRIC, .key = metric, .label = above, .digits = n, .scale = by}
#define SH_COL_VALUE(name, above, n, f) {.kind = SH_CELL_VALUE, .key = name, .label = above, .digits = n, .value = f}
#define SH_COL_SETTING(type, setting, above) {.kind = SH_CELL_##type, .key = setting, .label = above}
#define SH_COL_ON {.kind = SH_CELL_ON}
#define SH_COL_POLICY {.kind = SH_CELL_POLICY}
#define SH_COL_BUDGET {.kind = SH_CELL_BUDGET}
#define SH_COL_WEIGHTS {.kind = SH_CELL_WEIGHTS}
#define SH_COL_LAYER {.kind = SH_CELL_LAYER}
#define SH_COL_END {.kind = SH_CELL_END}

struct sh_report_table {
    const char *key, *title;
    const struct sh_report_column *column;
    int (*is_shown)(const struct sh_report_at *at);     /* NULL: every result                     */
    const char *(*link)(const struct sh_report_at *at); /* NULL: none                             */
    int by_layer;                       /* a row for each layer of a result                       */
    const void *more;                   /* argument for the functions                             */
};

/* Writes it, with the store of each result where there are several. */
void sh_report_rows(struct sh_report *r, const struct sh_results *all, const struct sh_report_table *t);

/* A part without `write`: its results as its table and its figure, or what is missing. */
int sh_report_results_part(struct sh_report *r, const struct sh_report_part *p, struct sh_err *e);

#endif
