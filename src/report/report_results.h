/* SPDX-License-Identifier: Apache-2.0 */
/* The results of one command, of all stores of a page: settings as JSON, and figures by name. */
#ifndef SH_REPORT_RESULTS_H
#define SH_REPORT_RESULTS_H

#include <jansson.h>

#include "src/report/report.h"

struct sh_result_figure {
    char metric[40];
    int layer;                          /* -1: of the whole model                                 */
    double value;
};

struct sh_result_row {
    json_t *settings;                   /* an object                                              */
    char *text;                         /* the same as it is stored                               */
    int store;
    struct sh_result_figure *at;        /* [n]                                                    */
    int n;
};

struct sh_results {
    struct sh_result_row *row;          /* [n]; what has no settings that can be read is left out */
    int n;
};

int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e);
void sh_results_free(struct sh_results *s);

/* Are they of several stores, so that a table must say which? */
int sh_results_mixed(const struct sh_results *s);

/* A figure of the stores that these results are in; where they do not suffice for it, that is said. */
int sh_results_figure(struct sh_report *r, const struct sh_results *s, const char *name, struct sh_err *e);

/* NaN: it has none. */
double sh_result(const struct sh_result_row *r, const char *metric, int layer);

/* Of the settings; "" and 0 where there is no such thing. */
const char *sh_result_text(const struct sh_result_row *r, const char *key);
long long sh_result_int(const struct sh_result_row *r, const char *key);

/* "0.2", "64"; "all" for the full policy, to which a budget is nothing. */
const char *sh_result_budget(const struct sh_result_row *r);

/* "whole", "4 bits", "50 % pruned"; for free(). */
char *sh_result_weights(const struct sh_result_row *r);

/* "h2o", "h2o:recent=10": knobs that are not at their start; for free(). */
char *sh_result_policy(const struct sh_result_row *r);

#endif
