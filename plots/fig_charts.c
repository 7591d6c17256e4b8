/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of lines over one axis: frontier (what a budget buys and costs), latency (times over the rate of requests)
 * and occupancy (the cache in use over time). */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define LIMIT " lc rgb '#404040' lw 1.2 dt '-'"

enum style { MARKS, LINES };    /* lines with marks on them, or without */

static void blocks(struct sh_gp *gp, const struct sh_fig_charts *d)
{
    for (int c = 0; c < d->n; c++)
        for (int i = 0; i < d->chart[c].n_lines; i++) {
            const struct sh_fig_line *l = &d->chart[c].lines[i];
            fprintf(gp->to, "$c%dl%d << EOD\n# ", c, i);
            sh_gp_text(gp, l->label, 200);
            putc('\n', gp->to);
            for (int k = 0; k < l->n; k++)
                sh_gp_row(gp, (double[]){l->x[k], d->chart[c].is_log && !(l->y[k] > 0) ? (double)NAN : l->y[k]}, 2);
            fputs("EOD\n", gp->to);
        }
}

/* What the lines, and the limit, reach from and to; 0: there is nothing, and gnuplot could not scale its axes. */
static int reach(const struct sh_fig_chart *c, double *low, double *high)
{
    int n = 0;
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < c->n_lines; i++)
        for (int k = 0; k < c->lines[i].n; k++) {
            double y = c->lines[i].y[k];
            if (!isfinite(c->lines[i].x[k]) || !isfinite(y) || (y <= 0 && c->is_log))
                continue;
            *low = fmin(*low, y);
            *high = fmax(*high, y);
            n++;
        }
    if (n && isfinite(c->limit) && (c->limit > 0 || !c->is_log)) {
        *low = fmin(*low, c->limit);
        *high = fmax(*high, c->limit);
    }
    return n;
}

static int has_points(const struct sh_fig_chart *c)
{
    double low, high;
    return reach(c, &low, &high);
}

static void axes(struct sh_gp *gp, const struct sh_fig_chart *c, double wide, double tall)
{
    double low, high, left = INFINITY, right = -INFINITY;
    for (int i = 0; i < c->n_lines; i++)
        for (int k = 0; k < c->lines[i].n; k++) {
            left = fmin(left, c->lines[i].x[k]);
            right = fmax(right, c->lines[i].x[k]);
        }
    fputs("unset logscale\n", gp->to);
    if (!reach(c, &low, &high)) {
        sh_gp_no_values(gp);
        return;
    }
    fputs("set xrange [*:*]\nset yrange [*:*]\n", gp->to);
    sh_gp_tics(gp, 'x', left, right, wide);
    sh_gp_tics(gp, 'y', c->is_close || low < 0 ? low : 0, high, tall);
    if (c->is_log)
        sh_gp_log_axis(gp, low, high, sh_gp_row_tics(tall));
    else if (!c->is_close && low >= 0)
        fputs("set yrange [0:*]\n", gp->to);
}

static void panel(struct sh_gp *gp, const struct sh_fig_chart *c, int number, enum style how)
{
    const char *separator = "plot ";
    char style[64];
    if (!has_points(c))
        fputs("plot NaN notitle", gp->to);
    for (int i = 0; i < c->n_lines && has_points(c); i++) {
        fprintf(gp->to, "%s$c%dl%d using 1:2 with %s%s", separator, number, i, how == MARKS ? "linespoints" : "lines",
                sh_gp_line_style(style, c->lines[i].look, c->lines[i].dash));
        if (how == MARKS)
            fprintf(gp->to, " pt %d ps 0.5", c->lines[i].dash ? 6 : 7);
        separator = ", \\\n    ";
    }
    if (isfinite(c->limit) && has_points(c)) {
        fprintf(gp->to, "%s", separator);
        sh_gp_real(gp, c->limit);
        fputs(" with lines" LIMIT, gp->to);
    }
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

/* Do all charts have this label at that axis? */
static int is_shared(const struct sh_fig_charts *d, int is_x)
{
    for (int c = 1; c < d->n; c++)
        if (strcmp(is_x ? d->chart[c].x : d->chart[c].y, is_x ? d->chart[0].x : d->chart[0].y))
            return 0;
    return 1;
}

/* The charts' data blocks, then the charts in a grid of boxes of these inches. */
static int draw(struct sh_gp *gp, const struct sh_fig_charts *d, double wide, double tall, enum style how)
{
    int share_x = is_shared(d, 1), share_y = is_shared(d, 0);
    char style[64];
    struct sh_gp_grid g = {.wide = wide, .tall = tall, .least = 0.5, .left = share_y ? 0.5 : 0.75, .right = 0.15,
                           .below = share_x ? 0.3 : 0.5, .last = share_x ? 0.2 : 0,
                           .first = share_y ? 0.25 : 0, .most = 2};
    for (int c = 0; c < d->n; c++) {
        for (int i = 0; i < d->chart[c].n_lines; i++)
            sh_gp_entry(&g, d->chart[c].lines[i].label, SH_GP_LINE, "%s",
                        sh_gp_line_style(style, d->chart[c].lines[i].look, d->chart[c].lines[i].dash));
        sh_gp_titled(&g, d->chart[c].title, NULL);
        if (isfinite(d->chart[c].limit) && d->chart[c].limit_label && has_points(&d->chart[c]))
            sh_gp_entry(&g, d->chart[c].limit_label, SH_GP_LINE, LIMIT);
    }
    sh_gp_lay_out(gp, &g, d->n);
    blocks(gp, d);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        const struct sh_fig_chart *c = &d->chart[g.at[i]];
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, c->title, NULL);
        sh_gp_axis_label(gp, "xlabel", c->x, g.wide + g.left, !share_x || sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", c->y, g.tall + 0.4, !share_y || sh_gp_is_left(&g, i));
        axes(gp, c, g.wide, g.tall);
        panel(gp, c, g.at[i], how);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static int draw_frontier(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d->frontier, 3.6, 3.2, MARKS);
}

static void caption_frontier(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_charts *d = data->frontier;
    fputs("against the share of tokens kept: ", to);
    for (int i = 0; i < d->n; i++)
        fprintf(to, "%s%s", i ? "; " : "", d->chart[i].title);
}

const struct sh_figure sh_figure_frontier = {
    .number = SH_FIG_frontier, .name = "frontier",
    .summary = "batch, speed and measured quality against the budget", .most = 4, .parts = "charts",
    .drawn_by = "capacity --plot-frontier FILE", .draw = draw_frontier, .caption = caption_frontier};

static int draw_latency(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d->latency, 4.2, 3.2, MARKS);
}

static void caption_latency(FILE *to, const struct sh_fig_data *d)
{
    (void)d;
    fputs("time to the first token and time per further token, against the request rate: median (p50) and 99th "
          "percentile (p99)", to);
}

const struct sh_figure sh_figure_latency = {
    .number = SH_FIG_latency, .name = "latency",
    .summary = "time to the first token and time per further token, against the request rate", .most = 4,
    .parts = "charts", .drawn_by = "simulate --plot-latency FILE", .draw = draw_latency, .caption = caption_latency};

static int draw_occupancy(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d->occupancy, d->occupancy->n > 1 ? 4.2 : 7.5, 3.0, LINES);
}

const struct sh_figure sh_figure_occupancy = {
    .number = SH_FIG_occupancy, .name = "occupancy",
    .summary = "share of the cache's memory in use over time, a panel for each rate", .most = SH_GP_PANELS,
    .parts = "charts", .drawn_by = "simulate --plot-occupancy FILE", .draw = draw_occupancy};
