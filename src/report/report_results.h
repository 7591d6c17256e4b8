/* SPDX-License-Identifier: Apache-2.0 */
/* The results of one command, of all stores of a page. */
#ifndef SH_REPORT_RESULTS_H
#define SH_REPORT_RESULTS_H

#include "src/app/store/results.h"
#include "src/report/report.h"

/* Of all stores of a page: rows say which, by their place there. */
int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e);

/* Are they of several stores, so that a table must say which? */
int sh_results_mixed(const struct sh_results *s);

/* A figure of the stores that these results are in; where they do not suffice for it, that is said. */
int sh_results_figure(struct sh_report *r, const struct sh_results *s, const char *name, struct sh_err *e);

/* "0.2", "64"; "all" for the full policy, to which a budget is nothing. */
const char *sh_result_budget(const struct sh_result_row *r);

/* "whole", "4 bits", "50 % pruned"; for free(). */
char *sh_result_weights(const struct sh_result_row *r);

#endif
