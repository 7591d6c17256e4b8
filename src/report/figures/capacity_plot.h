/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of shears capacity. */
#ifndef SH_REPORT_FIGURES_CAPACITY_PLOT_H
#define SH_REPORT_FIGURES_CAPACITY_PLOT_H

#include "src/report/figures/figure_data.h"
#include "src/app/capacity/capacity_study.h"
#include "src/base/err.h"

/* --plot-memory: a bar for each row. --plot-frontier: batch, speed and, where it was measured, quality over the
 * budget. Rows without a budget are full caches. */
int sh_capacity_plot_memory(const struct sh_capacity_row *rows, int n, const char *path, const struct sh_gp_look *look,
                            struct sh_err *e);
int sh_capacity_plot_frontier(const struct sh_capacity_row *rows, int n, const char *path,
                              const struct sh_gp_look *look, struct sh_err *e);

/* The data of the frontier; for sh_figure_data_free. limit: the largest allowed increase of the perplexity, as a share,
 * which is drawn, and far above which the axis is cut off; 0: none. */
struct sh_figure_data *sh_capacity_frontier(const struct sh_capacity_row *rows, int n, double limit);

#endif
