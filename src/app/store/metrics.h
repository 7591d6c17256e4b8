/* SPDX-License-Identifier: Apache-2.0 */
/* Figures under one name each: kept in the store's table of results, found there again by their settings,
 * and shown. */
#ifndef SH_APP_STORE_METRICS_H
#define SH_APP_STORE_METRICS_H

#include "src/base/out.h"
#include "traces/store.h"

/* One that a clock measures must be listed in traces/digest.c: else what was found twice has two hashes. */
struct sh_metric {
    const char *key, *label;            /* in the store and in JSON; above the column             */
    int digits;                         /* 0: a whole number                                      */
};

struct sh_metrics {                     /* what a command measures                                */
    const char *command;
    const struct sh_metric *metric;     /* [n]                                                    */
    int n;
};

struct sh_metric_row {                  /* one set of settings                                    */
    const char *settings;
    double *at;                         /* [n]; NaN: not defined                                  */
    int *is_known;                      /* set to 1 when the store has all figures of it          */
};

/* -1 also where a kept figure cannot be one (result_check.h). */
int sh_metrics_find(const struct sh_metrics *m, const struct sh_metric_row *row, int n_row, struct sh_store *s,
                    struct sh_err *e);
int sh_metrics_keep(const struct sh_metrics *m, const char *settings, const double *at, struct sh_store *s,
                    struct sh_err *e);

/* Erase what the store has of a command under those settings [n], in one transaction: ranks' finds are merged, which
 * replaces nothing. NULL among them is left out. */
int sh_results_forget(const char *command, const char *const *settings, int n, struct sh_store *s, struct sh_err *e);

/* The figures alone, between the store's begin and end of results. */
int sh_metrics_put(const struct sh_metrics *m, const char *settings, const double *at, struct sh_store *s,
                   struct sh_err *e);

void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o);

#endif
