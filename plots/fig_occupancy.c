/* SPDX-License-Identifier: Apache-2.0 */
/* The share of the cache's memory that is in use over time, of each plan. */
#include "plots/chart.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    sh_charts_draw(gp, d, d->occupancy, 7.5, 3.0, SH_CHART_LINES);
    return 0;
}

const struct sh_figure sh_figure_occupancy = {
    .number = SH_FIG_occupancy, .name = "occupancy",
    .summary = "share of the cache's memory in use over time", .most = 4, .parts = "charts",
    .drawn_by = "simulate --plot-occupancy FILE", .draw = draw};
