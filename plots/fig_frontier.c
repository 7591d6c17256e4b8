/* SPDX-License-Identifier: Apache-2.0 */
/* What a budget buys and what it costs: the batch that fits, its speed, and the quality that was measured, over the
 * same budgets. */
#include "plots/chart.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    sh_charts_draw(gp, d, d->frontier, 3.6, 3.2, SH_CHART_MARKS);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_charts *d = data->frontier;
    fputs("over the share of tokens kept: ", to);
    for (int i = 0; i < d->n; i++)
        fprintf(to, "%s%s", i ? "; " : "", d->chart[i].title);
}

const struct sh_figure sh_figure_frontier = {
    .number = SH_FIG_frontier, .name = "frontier",
    .summary = "batch, speed and measured quality over the budget", .most = 4, .parts = "charts",
    .drawn_by = "capacity --plot-frontier FILE", .draw = draw, .caption = caption};
