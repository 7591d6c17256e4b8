/* SPDX-License-Identifier: Apache-2.0 */
/* What a budget buys and what it costs: the batch that fits, its speed, and the quality that was measured, over the
 * same budgets. */
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    sh_charts_draw(gp, d, 3.6, 3.2, SH_CHART_MARKS);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    fputs("over the share of tokens kept: ", to);
    for (int i = 0; i < d->n_charts; i++)
        fprintf(to, "%s%s", i ? "; " : "", d->charts[i].title);
}

const struct sh_figure sh_figure_frontier = {
    "frontier", "batch, speed and measured quality over the budget (capacity)", SH_FIG_CHARTS, draw, caption};
