/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of lines over one axis: frontier (what a budget buys and costs), latency (times over the rate of requests)
 * and occupancy (the cache in use over time). */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define LIMIT " lc rgb '#404040' lw 1.2 dt '-'"
#define PLAIN " lc rgb '#404040' lw 1.6"
#define GREY " lc rgb '#c8c8c8' lw 0.8 dt 1"
#define NEAR 5.0                /* times the largest value: beyond, a limit would press the lines flat */

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

/* What the lines reach from and to; 0: there is nothing, and gnuplot could not scale its axes. */
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
    return n;
}

static int has_values(const struct sh_fig_line *l, int is_log)
{
    for (int k = 0; k < l->n; k++)
        if (isfinite(l->x[k]) && isfinite(l->y[k]) && (l->y[k] > 0 || !is_log))
            return 1;
    return 0;
}

static int has_limit(const struct sh_fig_chart *c, double high)
{
    return isfinite(c->limit) && (c->limit > 0 || !c->is_log) && c->limit <= NEAR * high;
}

/* Do all charts have this label at that axis? */
static int is_shared(const struct sh_fig_charts *d, int is_x)
{
    for (int c = 1; c < d->n; c++)
        if (strcmp(is_x ? d->chart[c].x : d->chart[c].y, is_x ? d->chart[0].x : d->chart[0].y))
            return 0;
    return 1;
}

/* From where to where the lines of a chart go. */
static void widen(const struct sh_fig_chart *c, double *left, double *right)
{
    for (int i = 0; i < c->n_lines; i++)
        for (int k = 0; k < c->lines[i].n; k++) {
            *left = fmin(*left, c->lines[i].x[k]);
            *right = fmax(*right, c->lines[i].x[k]);
        }
}

/* Charts of one kind and unit, such as a rate each, have one scale: what is reached by any. So has an x axis of one
 * unit. */
static void axes(struct sh_gp *gp, const struct sh_fig_charts *d, int number, int one_scale, const struct sh_gp_grid *g)
{
    const struct sh_fig_chart *c = &d->chart[number];
    double low, high, left = INFINITY, right = -INFINITY;
    for (int i = 0; i < d->n; i++)
        if (i == number || is_shared(d, 1))
            widen(&d->chart[i], &left, &right);
    fputs("unset logscale\n", gp->to);
    if (!reach(c, &low, &high)) {
        sh_gp_no_values(gp);
        return;
    }
    for (int i = 0; i < d->n && one_scale; i++) {
        double least, most;
        if (reach(&d->chart[i], &least, &most)) {
            low = fmin(low, least);
            high = fmax(high, most);
        }
    }
    if (has_limit(c, high)) {
        low = fmin(low, c->limit);
        high = fmax(high, c->limit);
    }
    int is_cut = c->most > 0 && high > c->most;
    high = is_cut ? c->most : high;
    fputs("set yrange [*:*]\n", gp->to);
    sh_gp_x_axis(gp, left, right, g->wide);
    sh_gp_tics(gp, 'y', c->is_close || low < 0 ? low : 0, high, g->tall);
    if (c->is_log)
        sh_gp_log_axis(gp, low, high, sh_gp_row_tics(g->tall));
    else if (!c->is_close && (low >= 0 || is_cut))
        fprintf(gp->to, "set yrange [%.6g:%.6g]\n", low < 0 ? low - 0.03 * (high - low) : 0,
                is_cut ? high : high > 0 ? 1.03 * high : 1);
}

static void panel(struct sh_gp *gp, const struct sh_fig_chart *c, int number, enum style how)
{
    const char *separator = "plot ";
    char style[64];
    double low, high;
    int n = reach(c, &low, &high);
    if (!n)
        fputs("plot NaN notitle", gp->to);
    for (int grey = 1; grey >= 0 && n; grey--)
        for (int i = 0; i < c->n_lines; i++) {
            const struct sh_fig_line *l = &c->lines[i];
            if (l->is_grey != grey)
                continue;
            int marks = how == MARKS && !grey;
            fprintf(gp->to, "%s$c%dl%d using 1:2 with %s%s", separator, number, i, marks ? "linespoints" : "lines",
                    grey ? GREY : l->is_plain ? PLAIN : sh_gp_line_style(style, l->look, l->dash));
            if (marks)
                fprintf(gp->to, " pt %d ps 0.5", l->dash ? 6 : 7);
            separator = ", \\\n    ";
        }
    if (n && isfinite(c->limit)) {
        fprintf(gp->to, "%s", separator);
        sh_gp_real(gp, c->limit);
        fputs(" with lines" LIMIT, gp->to);
    }
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

/* A line without a value has no entry; a limit far away is told where it is, by its label alone. */
static void legend(struct sh_gp_grid *g, const struct sh_fig_charts *d)
{
    char style[64];
    double low, high;
    int n_grey = 0;
    for (int c = 0; c < d->n; c++)
        for (int i = 0; i < d->chart[c].n_lines; i++) {
            const struct sh_fig_line *l = &d->chart[c].lines[i];
            n_grey += l->is_grey;
            if (!l->is_grey && !l->is_plain && has_values(l, d->chart[c].is_log))
                sh_gp_entry(g, l->label, SH_GP_LINE, "%s", sh_gp_line_style(style, l->look, l->dash));
        }
    if (n_grey)
        sh_gp_entry(g, "others", SH_GP_LINE, GREY);
    for (int c = 0; c < d->n; c++)
        if (d->chart[c].limit_label && reach(&d->chart[c], &low, &high) && has_limit(&d->chart[c], high))
            sh_gp_entry(g, d->chart[c].limit_label, SH_GP_LINE, LIMIT);
}

/* The charts' data blocks, then the charts in a grid of boxes of these inches. */
static int draw(struct sh_gp *gp, const struct sh_fig_charts *d, double wide, double tall, enum style how)
{
    int share_x = is_shared(d, 1), share_y = is_shared(d, 0);
    struct sh_gp_grid g = {.wide = wide, .tall = tall, .least = 0.5, .left = share_y ? 0.5 : 0.75, .right = 0.15,
                           .below = share_x ? 0.3 : 0.5, .last = share_x ? 0.2 : 0,
                           .first = share_y ? 0.25 : 0, .most = 2};
    legend(&g, d);
    for (int c = 0; c < d->n; c++)
        sh_gp_titled(&g, d->chart[c].title, NULL);
    sh_gp_lay_out(gp, &g, d->n);
    blocks(gp, d);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        const struct sh_fig_chart *c = &d->chart[g.at[i]];
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, c->title, NULL);
        sh_gp_axis_label(gp, "xlabel", c->x, g.wide + g.left, !share_x || sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", c->y, g.tall + 0.4, !share_y || sh_gp_is_left(&g, i));
        axes(gp, d, g.at[i], how == LINES && share_y, &g);
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
    fputs("what a share of the tokens buys and costs:", to);
    for (int i = 0; i < d->n; i++)
        fprintf(to, "%s %s", i ? ";" : "", d->chart[i].title);
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
    fputs("the time to the first token and the time per further token, against the request rate: median (p50) and 99th "
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
