/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a page, and the store that says what its budgets cost. */
#ifndef SH_REPORT_MODEL_H
#define SH_REPORT_MODEL_H

#include "src/report/report.h"

#define SH_REPORT_GPUS "RTX-4090,A100-SXM-80GB,H100-SXM"        /* if none is asked for */

struct sh_report_model {
    const char *name;                   /* name, as capacity takes it                             */
    char *from_trace;                   /* the model as it was typed when it was traced; owned    */
    long long length;                   /* tokens of a sequence: as struct sh_report, or the model's positions */
};

/* The one that was asked for, or that was traced. 1: found; 0: its configuration is not known; -1. Clear it in any
 * case. */
int sh_report_find_model(const struct sh_report *r, struct sh_report_model *m, struct sh_err *e);
void sh_report_model_clear(struct sh_report_model *m);

/* What is known of a traced model next to the name of its folder: " (facebook/opt-125m)", as the hub or its
 * configuration calls it, or else " (opt, 12 layers)"; "" if its folder has the same name, or cannot be read. For
 * free(). */
char *sh_report_known_as(const struct sh_report *r, const struct sh_stored_run *run);

/* The first store of trained weights whose budgets were measured: *at, -1: none. */
int sh_report_measured(const struct sh_report *r, int *at, struct sh_err *e);

#endif
