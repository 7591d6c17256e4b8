/* SPDX-License-Identifier: Apache-2.0 */
/* Times to the first token and of each further one over the rate of requests: the middle and the hundredth-worst
 * of each plan, and the limits that were asked for. */
#include "plots/chart.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    sh_charts_draw(gp, d, d->latency, 4.2, 3.2, SH_CHART_MARKS);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    (void)d;
    fputs("time to the first token and time per further token, over the request rate: median (p50) and 99th "
          "percentile (p99)", to);
}

const struct sh_figure sh_figure_latency = {
    .number = SH_FIG_latency, .name = "latency",
    .summary = "time to the first token and time per further token, over the request rate", .most = 4,
    .parts = "charts", .drawn_by = "simulate --plot-latency FILE", .draw = draw, .caption = caption};
