/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of shears capacity. */
#ifndef SH_REPORT_FIGURES_CAPACITY_PLOT_H
#define SH_REPORT_FIGURES_CAPACITY_PLOT_H

#include "src/app/capacity/capacity_study.h"
#include "src/base/err.h"

/* --plot-memory: a bar for each row. --plot-frontier: batch, speed and, where it was measured, quality over the
 * budget. Rows without a budget are whole caches. */
int sh_capacity_plot_memory(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e);
int sh_capacity_plot_frontier(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e);

/* The frontier's data are handed to `draw`. */
struct sh_fig_data;
int sh_capacity_frontier(const struct sh_capacity_row *rows, int n,
                         int (*draw)(void *to, const struct sh_fig_data *d, struct sh_err *e), void *to,
                         struct sh_err *e);

#endif
