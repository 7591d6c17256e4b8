/* SPDX-License-Identifier: Apache-2.0 */
/* See latency.h. */
#include "src/report/figures/latency.h"

#include <stdlib.h>

#include "src/base/mem.h"

struct sh_time_unit sh_latency_unit(const struct sh_latency *at, int n, int which)
{
    double *seconds = xcalloc(SH_N_QUANTILE * (size_t)n, sizeof *seconds);
    for (int i = 0; i < SH_N_QUANTILE * n; i++)
        seconds[i] = at[i / SH_N_QUANTILE].seconds[which][i % SH_N_QUANTILE];
    struct sh_time_unit u = sh_time_unit(seconds, SH_N_QUANTILE * n);
    free(seconds);
    return u;
}

/* The lines of one chart: the p50 and the p99 of each cache. */
static int lines(struct sh_figure_data *d, const struct sh_latency *at, int n, int which, double per_s,
                 struct sh_fig_line *line)
{
    int n_line = 0;
    double *x = sh_figure_keep(d, xcalloc((1 + SH_N_QUANTILE) * (size_t)n, sizeof *x));
    for (int i = 0, from = 0; i <= n; i++) {
        if (i < n)
            x[i] = at[i].rate;
        if (i < n && at[i].cache == at[from].cache)
            continue;
        for (int q = 0; q < SH_N_QUANTILE; q++) {
            double *y = x + (1 + q) * n + from;
            for (int k = from; k < i; k++)
                y[k - from] = at[k].seconds[which][q] * per_s;
            char *label = xasprintf("%s, %s", at[from].name, q == SH_P50 ? "p50" : "p99");
            line[n_line] = (struct sh_fig_line){sh_figure_keep(d, label), i - from, n_line / SH_N_QUANTILE, q, x + from,
                                                y, 0, 0};
            n_line++;
        }
        from = i;
    }
    return n_line;
}

void sh_latency_fill(struct sh_figure_data *d, const struct sh_latency *at, int n, const char *load,
                     const double limit[SH_N_LATENCY])
{
    static const char *const title[SH_N_LATENCY] = {"time to the first token", "time of each further token"};
    struct sh_fig_chart *chart = sh_figure_keep(d, xcalloc(SH_N_LATENCY, sizeof *chart));
    struct sh_fig_charts *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    for (int k = 0; k < SH_N_LATENCY; k++) {
        struct sh_time_unit u = sh_latency_unit(at, n, k);
        struct sh_fig_line *line = sh_figure_keep(d, xcalloc(SH_N_QUANTILE * (size_t)n, sizeof *line));
        int n_line = lines(d, at, n, k, u.per_s, line);
        chart[k] = (struct sh_fig_chart){title[k], load, u.whole, 1, 0, limit[k] * u.per_s, "limit",
                                         n_line, line, 0};
    }
    *all = (struct sh_fig_charts){SH_N_LATENCY, chart};
    d->out.latency = all;
}
