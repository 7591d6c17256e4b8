/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of lines over one axis: frontier (what a budget buys and costs), latency (times over the rate of requests)
 * and occupancy (the cache in use over time). */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define LEFT 0.95               /* inches around a panel */
#define RIGHT 0.25
#define TOP 1.0
#define BOTTOM 0.85              /* axis and its label */

#define LETTER 0.088            /* of its text, more or less */

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

static void axes(struct sh_gp *gp, const struct sh_fig_chart *c, double wide)
{
    int letters = sh_gp_letters(wide + 0.5);
    double low, high;
    sh_gp_set(gp, "title", c->title, letters);
    sh_gp_set(gp, "xlabel", c->x, letters);
    sh_gp_set(gp, "ylabel", c->y, 48);
    fputs("unset logscale\n", gp->to);
    if (!reach(c, &low, &high)) {
        sh_gp_no_values(gp);
        return;
    }
    fputs("set xrange [*:*]\nset yrange [*:*]\nset xtics auto\nset ytics auto\n", gp->to);
    if (c->is_log)
        sh_gp_log_axis(gp, low, high);
    else if (!c->is_close && low >= 0)
        fputs("set yrange [0:*]\n", gp->to);
}

static void look(struct sh_gp *gp, const struct sh_fig_line *l, enum style how)
{
    fputs(how == MARKS ? "with linespoints" : "with lines", gp->to);
    sh_gp_line_style(gp, l->look, l->dash);
    if (how == MARKS)
        fprintf(gp->to, " pt %d ps 0.5", l->dash ? 6 : 7);
}

static int letters_of(double wide, int columns)
{
    return (int)((wide / columns - 0.45) / LETTER);
}

/* Columns of the legends: two, or one where a name would be cut. */
static int key_columns(const struct sh_fig_charts *d, double wide)
{
    for (int c = 0; c < d->n; c++)
        for (int i = 0; i < d->chart[c].n_lines; i++)
            if (strlen(d->chart[c].lines[i].label) > (size_t)letters_of(wide, 2))
                return 1;
    return 2;
}

static void legend(struct sh_gp *gp, const struct sh_fig_chart *c, double left, double top, double wide, int columns)
{
    for (int i = 0; i < c->n_lines; i++) {
        const struct sh_fig_line *l = &c->lines[i];
        sh_gp_key(gp, i + 1, left + wide / columns * (i % columns), top + SH_GP_KEY * (i / columns),
                  &(struct sh_gp_key){l->label, letters_of(wide, columns), l->look, l->dash});
    }
}

static void panel(struct sh_gp *gp, const struct sh_fig_chart *c, int number, enum style how)
{
    const char *separator = "plot ";
    if (!has_points(c)) {
        fputs("plot NaN notitle\nunset label\nunset arrow\n", gp->to);
        return;
    }
    for (int i = 0; i < c->n_lines; i++) {
        fprintf(gp->to, "%s$c%dl%d using 1:2 ", separator, number, i);
        look(gp, &c->lines[i], how);
        separator = ", \\\n    ";
    }
    if (isfinite(c->limit)) {
        fprintf(gp->to, "%s", separator);
        sh_gp_real(gp, c->limit);
        fputs(" with lines lc rgb '#404040' lw 1.2 dt '-'", gp->to);
    }
    fputs("\nunset label\nunset arrow\n", gp->to);
}

/* The tallest legend of a row of charts. */
static double key_in(const struct sh_fig_charts *d, int from, int n, int columns)
{
    int most = 0;
    for (int c = from; c < from + n && c < d->n; c++)
        most = d->chart[c].n_lines > most ? d->chart[c].n_lines : most;
    return SH_GP_KEY * ((most + columns - 1) / columns) + 0.15;
}

/* The charts' data blocks, then each chart in a box of these inches from the left, its legend below it. */
static int draw(struct sh_gp *gp, const struct sh_fig_data *data, const struct sh_fig_charts *d, double wide,
                double tall, enum style how)
{
    int n_columns = sh_gp_columns(gp, LEFT + wide + RIGHT, d->n < 2 ? 1 : 2),
        n_rows = (d->n + n_columns - 1) / n_columns;
    double page = sh_gp_room(gp, (LEFT + wide + RIGHT) * n_columns), pitch = page / n_columns;
    wide = pitch - LEFT - RIGHT;
    int columns = key_columns(d, wide + 0.4);
    double top = TOP, height = TOP - 0.45;
    for (int i = 0; i < n_rows; i++)
        height += tall + BOTTOM + key_in(d, i * n_columns, n_columns, columns) + 0.45;
    sh_gp_page(gp, page, height, data->title, data->settings);
    blocks(gp, d);
    fputs("unset key\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int c = 0; c < d->n; c++) {
        const struct sh_fig_chart *at = &d->chart[c];
        double left = LEFT + pitch * (c % n_columns);
        sh_gp_box(gp, left, top, wide, tall);
        axes(gp, at, wide);
        legend(gp, at, left - 0.4, top + tall + BOTTOM, wide + 0.4, columns);
        if (isfinite(at->limit) && at->limit_label && has_points(at)) {
            fputs("set label 900 ", gp->to);
            sh_gp_text(gp, at->limit_label, 32);
            fputs(" at graph 0.01, first ", gp->to);
            sh_gp_real(gp, at->limit);
            fputs(" left offset 0, 0.5 tc rgb '#404040'\n", gp->to);
        }
        panel(gp, at, c, how);
        if (c % n_columns == n_columns - 1)
            top += tall + BOTTOM + key_in(d, c + 1 - n_columns, n_columns, columns) + 0.45;
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static int draw_frontier(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d, d->frontier, 3.6, 3.2, MARKS);
}

static void caption_frontier(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_charts *d = data->frontier;
    fputs("over the share of tokens kept: ", to);
    for (int i = 0; i < d->n; i++)
        fprintf(to, "%s%s", i ? "; " : "", d->chart[i].title);
}

const struct sh_figure sh_figure_frontier = {
    .number = SH_FIG_frontier, .name = "frontier",
    .summary = "batch, speed and measured quality over the budget", .most = 4, .parts = "charts",
    .drawn_by = "capacity --plot-frontier FILE", .draw = draw_frontier, .caption = caption_frontier};

static int draw_latency(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d, d->latency, 4.2, 3.2, MARKS);
}

static void caption_latency(FILE *to, const struct sh_fig_data *d)
{
    (void)d;
    fputs("time to the first token and time per further token, over the request rate: median (p50) and 99th "
          "percentile (p99)", to);
}

const struct sh_figure sh_figure_latency = {
    .number = SH_FIG_latency, .name = "latency",
    .summary = "time to the first token and time per further token, over the request rate", .most = 4,
    .parts = "charts", .drawn_by = "simulate --plot-latency FILE", .draw = draw_latency, .caption = caption_latency};

static int draw_occupancy(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    (void)e;
    return draw(gp, d, d->occupancy, 7.5, 3.0, LINES);
}

const struct sh_figure sh_figure_occupancy = {
    .number = SH_FIG_occupancy, .name = "occupancy",
    .summary = "share of the cache's memory in use over time", .most = 4, .parts = "charts",
    .drawn_by = "simulate --plot-occupancy FILE", .draw = draw_occupancy};
