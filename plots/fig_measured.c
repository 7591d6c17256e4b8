/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of measured values with their errors: compression (quality against compression, Fig 3 of the Scissorhands
 * paper), quant (what fewer bits for keys and values cost, alone and on top of eviction), drift (tokens kept by a live
 * cache compared with the replay) and score-change (scores compared with the full cache's, Fig 4 of that paper). */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

static double shown(double v, int is_log)
{
    return is_log && !(v > 0) ? (double)NAN : v;
}

static void block(struct sh_gp *gp, const struct sh_fig_measured *m, int panel, int line)
{
    const struct sh_fig_measured_line *l = &m->lines[line];
    fprintf(gp->to, "$p%dl%d << EOD\n# x y low high\n", panel, line);
    for (int k = 0; k < l->n; k++) {
        double low = l->low ? l->low[k] : (double)NAN, high = l->high ? l->high[k] : (double)NAN;
        sh_gp_row(gp, (double[]){shown(l->x[k], m->is_log_x), shown(l->y[k], m->is_log_y), shown(low, m->is_log_y),
                                 shown(high, m->is_log_y)}, 4);
    }
    fputs("EOD\n", gp->to);
}

/* gnuplot fails where it finds nothing to scale its axes by. */
static int has_points(const struct sh_fig_measured *m)
{
    for (int i = 0; i < m->n_lines; i++)
        for (int k = 0; k < m->lines[i].n; k++)
            if (isfinite(shown(m->lines[i].x[k], m->is_log_x)) && isfinite(shown(m->lines[i].y[k], m->is_log_y)))
                return 1;
    return 0;
}

static void limit(struct sh_gp *gp, double value)
{
    if (isfinite(value))
        sh_gp_real(gp, value);
    else
        putc('*', gp->to);
}

static void widen(double v, double *low, double *high)
{
    if (!isfinite(v))
        return;
    *low = v < *low ? v : *low;
    *high = v > *high ? v : *high;
}

/* Tics of a logarithmic x axis are the values themselves, of those that lie close together the first. */
static void value_tics(struct sh_gp *gp, const struct sh_fig_measured *m, double wide)
{
    double low = INFINITY, high = 0, at = 0;
    for (int i = 0; i < m->n_lines; i++)
        for (int k = 0; k < m->lines[i].n; k++)
            widen(shown(m->lines[i].x[k], 1), &low, &high);
    fputs("set xrange [", gp->to);
    sh_gp_real(gp, low < high ? low : low / 2);
    putc(':', gp->to);
    sh_gp_real(gp, low < high ? high : high * 2);
    fputs("]\nset xtics (", gp->to);
    for (double next = low; isfinite(next);) {
        fprintf(gp->to, "%s'%.2g' ", at > 0 ? ", " : "", next);
        sh_gp_real(gp, next);
        double least = next * fmax(1.03, pow(high / low, 0.3 / wide));
        at = next;
        next = INFINITY;
        for (int i = 0; i < m->n_lines; i++)
            for (int k = 0; k < m->lines[i].n; k++)
                if (m->lines[i].x[k] > least && m->lines[i].x[k] < next)
                    next = m->lines[i].x[k];
    }
    fputs(")\n", gp->to);
}

/* What the panel's values and bands reach from and to. */
static void reach(const struct sh_fig_measured *m, double *low, double *high)
{
    for (int i = 0; i < m->n_lines; i++)
        for (int k = 0; k < m->lines[i].n; k++) {
            const struct sh_fig_measured_line *l = &m->lines[i];
            widen(shown(l->y[k], m->is_log_y), low, high);
            widen(shown(l->low ? l->low[k] : (double)NAN, m->is_log_y), low, high);
            widen(shown(l->high ? l->high[k] : (double)NAN, m->is_log_y), low, high);
        }
}

/* Room for what a panel shows, the bands too: gnuplot's own ranges are those of the lines. Panels of one kind that have
 * the same ceiling have one scale. */
static void linear_range(struct sh_gp *gp, const struct sh_fig_measured_panels *d, int number, double tall)
{
    const struct sh_fig_measured *m = &d->panel[number];
    double low = m->floor, high = m->ceiling, least = INFINITY, most = -INFINITY;
    for (int i = 0; i < d->n; i++)
        if (i == number || (isfinite(high) && d->panel[i].ceiling >= high && d->panel[i].ceiling <= high &&
                            !strcmp(d->panel[i].y, m->y)))
            reach(&d->panel[i], &least, &most);
    double room = 0.04 * (most - least);
    fputs("set yrange [", gp->to);
    limit(gp, isfinite(low) ? low : most > least ? least - room : low);
    putc(':', gp->to);
    limit(gp, isfinite(high) ? high + (least < high ? 0.03 * (high - least) : 0) : most > least ? most + room : high);
    fputs("]\n", gp->to);
    sh_gp_tics(gp, 'y', isfinite(low) ? low : least, isfinite(high) ? high : most, tall);
}

static void axes(struct sh_gp *gp, const struct sh_fig_measured_panels *d, int number, double bar, double wide,
                 double tall)
{
    const struct sh_fig_measured *m = &d->panel[number];
    fputs("unset logscale\n", gp->to);
    if (!has_points(m)) {
        sh_gp_no_values(gp);
        return;
    }
    if (m->is_log_x) {
        fputs("set logscale x 10\n", gp->to);
        value_tics(gp, m, wide);
    } else {
        double left = INFINITY, right = -INFINITY;
        for (int i = 0; i < m->n_lines; i++)
            for (int k = 0; k < m->lines[i].n; k++)
                widen(m->lines[i].x[k], &left, &right);
        sh_gp_x_axis(gp, left - bar / 2, right + bar / 2, wide);
    }
    if (m->is_log_y) {
        double low = INFINITY, high = 0;
        reach(m, &low, &high);
        sh_gp_log_axis(gp, low, high, sh_gp_row_tics(tall));
    } else {
        linear_range(gp, d, number, tall);
    }
}

/* Colours first, then the same dashed and with hollow marks, then dotted with hollow squares, and so on. */
static int dash_of(int line)
{
    return line / SH_GP_COLOURS;
}

/* The number of a line's name among those of all panels: one name has one look. */
static int look_of(const struct sh_fig_measured_panels *d, int panel, int line)
{
    const char *label = d->panel[panel].lines[line].label;
    int n = 0;
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_lines; i++) {
            if (!strcmp(d->panel[p].lines[i].label, label))
                return n;
            int is_new = 1;
            for (int q = 0; q <= p && is_new; q++)
                for (int k = 0; k < (q < p ? d->panel[q].n_lines : i) && is_new; k++)
                    is_new = strcmp(d->panel[q].lines[k].label, d->panel[p].lines[i].label) != 0;
            n += is_new;
        }
    return n;
}

static void curves(struct sh_gp *gp, const struct sh_fig_measured_panels *d, int panel)
{
    const struct sh_fig_measured *m = &d->panel[panel];
    const char *separator = "plot ";
    char style[64];
    for (int i = 0; i < m->n_lines; i++) {
        if (!m->lines[i].low)
            continue;
        fprintf(gp->to, "%s$p%dl%d using 1:3:4 with filledcurves ls %d fs transparent solid 0.25 noborder", separator,
                panel, i, look_of(d, panel, i) % SH_GP_COLOURS + 1);
        separator = ", \\\n    ";
    }
    for (int i = 0; i < m->n_lines; i++) {
        static const int mark[] = {7, 6, 4, 8, 10, 12};
        int look = look_of(d, panel, i);
        fprintf(gp->to, "%s$p%dl%d using 1:2 with linespoints%s pt %d ps 0.5", separator, panel, i,
                sh_gp_line_style(style, look, dash_of(look)), mark[dash_of(look) % 6]);
        separator = ", \\\n    ";
    }
}

static void bars(struct sh_gp *gp, const struct sh_fig_measured_panels *d, int panel, double bar)
{
    char style[64];
    fprintf(gp->to, "set boxwidth %g absolute\nplot $p%dl0 using 1:2 with boxes ls %d fs solid 0.55 border", bar, panel,
            look_of(d, panel, 0) % SH_GP_COLOURS + 1);
    for (int i = 1; i < d->panel[panel].n_lines; i++) {
        int look = look_of(d, panel, i);
        fprintf(gp->to, ", \\\n    $p%dl%d using 1:2 with histeps%s lw 1.6", panel, i,
                sh_gp_line_style(style, look, dash_of(look)));
    }
}

static void draw_panel(struct sh_gp *gp, const struct sh_fig_measured_panels *d, const struct sh_gp_grid *g, int i,
                       double bar)
{
    int number = g->at[i];
    const struct sh_fig_measured *m = &d->panel[number];
    sh_gp_cell(gp, g, i);
    sh_gp_panel_title(gp, g, m->title, NULL);
    sh_gp_axis_label(gp, "xlabel", m->x, g->wide + 0.3, g->last <= 0 || sh_gp_is_last(g, i));
    sh_gp_axis_label(gp, "ylabel", m->y, g->tall + 0.4, g->first <= 0 || sh_gp_is_left(g, i));
    axes(gp, d, number, bar, g->wide, g->tall);
    if (!has_points(m))
        fputs("plot NaN notitle", gp->to);
    else if (bar > 0)
        bars(gp, d, number, bar);
    else
        curves(gp, d, number);
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

/* Do all panels have this label at that axis? */
static int is_shared(const struct sh_fig_measured_panels *d, int is_x)
{
    for (int i = 1; i < d->n; i++)
        if (strcmp(is_x ? d->panel[i].x : d->panel[i].y, is_x ? d->panel[0].x : d->panel[0].y))
            return 0;
    return 1;
}

static int is_first(const struct sh_fig_measured_panels *d, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(d->panel[k].what, d->panel[i].what))
            return 0;
    return 1;
}

/* What the panels show, each once. */
static void caption(FILE *to, const struct sh_fig_measured_panels *d)
{
    int n = 0, n_said = 0;
    for (int i = 0; i < d->n; i++)
        n += is_first(d, i);
    for (int i = 0; i < d->n; i++)
        if (is_first(d, i)) {
            fprintf(to, "%s%s", !n_said ? "" : n_said + 1 < n ? ", " : " and ", d->panel[i].what);
            n_said++;
        }
}

/* Points joined by lines, an interval as a band; or, with a width of bars, x as the middle of each bar, the first line
 * filled, the others as outlines. */
static int draw(struct sh_gp *gp, const struct sh_fig_measured_panels *d, double bar, struct sh_err *e)
{
    char style[64];
    int share_x = is_shared(d, 1), share_y = is_shared(d, 0);
    struct sh_gp_grid g = {.wide = 4.6, .tall = 3.1, .least = 0.5, .left = share_y ? 0.55 : 0.8, .right = 0.12,
                           .below = share_x ? 0.3 : 0.52, .last = share_x ? 0.2 : 0, .first = share_y ? 0.25 : 0,
                           .most = 2};
    for (int i = 0; i < d->n; i++) {
        if (d->panel[i].n_lines < 1 || d->panel[i].n_lines > SH_MEASURED_LINES)
            return sh_misused(e, "a panel shows 1 to %d lines, found %d", SH_MEASURED_LINES, d->panel[i].n_lines);
        for (int k = 0; k < d->panel[i].n_lines; k++)
            sh_gp_entry(&g, d->panel[i].lines[k].label, SH_GP_LINE, "%s",
                        sh_gp_line_style(style, look_of(d, i, k), dash_of(look_of(d, i, k))));
    }
    for (int i = 0; i < d->n; i++)
        sh_gp_titled(&g, d->panel[i].title, NULL);
    sh_gp_lay_out(gp, &g, d->n);
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < d->panel[i].n_lines; k++)
            block(gp, &d->panel[i], i, k);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++)
        draw_panel(gp, d, &g, i, bar);
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static int draw_compression(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d->compression, 0, e);
}

static void caption_compression(FILE *to, const struct sh_fig_data *d)
{
    caption(to, d->compression);
    fputs(", against the compression of the cache", to);
}

const struct sh_figure sh_figure_compression = {
    .number = SH_FIG_compression, .name = "compression",
    .summary = "perplexity and accuracy against the compression of the cache", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw_compression, .caption = caption_compression};

static int draw_quant(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d->quant, 0, e);
}

static void caption_quant(FILE *to, const struct sh_fig_data *d)
{
    caption(to, d->quant);
}

const struct sh_figure sh_figure_quant = {
    .number = SH_FIG_quant, .name = "quant",
    .summary = "perplexity against the bits of keys and values, and against the bytes of the cache",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw_quant, .caption = caption_quant};

static int draw_drift(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d->drift, 0, e);
}

const struct sh_figure sh_figure_drift = {
    .number = SH_FIG_drift, .name = "drift",
    .summary = "agreement of the tokens kept by the live cache and by the replay, along the text",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw_drift};

static int draw_score_change(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d->score_change, 0.1, e);
}

const struct sh_figure sh_figure_score_change = {
    .number = SH_FIG_score_change, .name = "score-change",
    .summary = "change of the attention scores when the cache is compressed", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw_score_change};
