/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of measured values with their errors: compression (quality against compression, Fig 3 of the Scissorhands
 * paper), quant (what fewer bits for keys and values cost, alone and on top of eviction), drift (tokens kept by a live
 * cache compared with the replay) and score-change (scores compared with the full cache's, Fig 4 of that paper). */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define TALL 3.1                /* inches, a panel without its margins */
#define LEFT 0.95
#define RIGHT 0.2
#define PITCH_X 5.85            /* from one panel to the next, where there is room */
#define BELOW 0.87              /* axis and its label */
#define KEY_MARK 0.5            /* inches before a name and after it */

struct page {
    double pitch, row;              /* inches from one panel to the next */
    int across, key_columns;
};

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
static void value_tics(struct sh_gp *gp, const struct sh_fig_measured *m)
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
        double least = next * fmax(1.03, pow(high / low, 0.06));
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

/* Room for what a panel shows, the bands too: gnuplot's own ranges are those of the lines. */
static void linear_range(struct sh_gp *gp, const struct sh_fig_measured *m)
{
    double low = m->floor, high = m->ceiling, least = INFINITY, most = -INFINITY;
    reach(m, &least, &most);
    double room = 0.04 * (most - least);
    fputs("set yrange [", gp->to);
    limit(gp, isfinite(low) ? low : most > least ? least - room : low);
    putc(':', gp->to);
    limit(gp, isfinite(high) ? high : most > least ? most + room : high);
    fputs("]\n", gp->to);
}

static void axes(struct sh_gp *gp, const struct sh_fig_measured *m, double pitch)
{
    sh_gp_set(gp, "title", m->title, sh_gp_letters(pitch - 0.5));
    sh_gp_set(gp, "xlabel", m->x, sh_gp_letters(pitch - 0.1));
    sh_gp_set(gp, "ylabel", m->y, 46);
    fputs("unset logscale\nset xtics auto\nset ytics auto\nset xrange [*:*]\n", gp->to);
    if (!has_points(m)) {
        sh_gp_no_values(gp);
        return;
    }
    if (m->is_log_x) {
        fputs("set logscale x 10\n", gp->to);
        value_tics(gp, m);
    }
    if (m->is_log_y) {
        double low = INFINITY, high = 0;
        reach(m, &low, &high);
        sh_gp_log_axis(gp, low, high);
    } else {
        linear_range(gp, m);
    }
}

/* Colours first, then the same dashed and with hollow marks, then dotted with hollow squares, and so on. */
static int dash_of(int line)
{
    return line / SH_GP_COLOURS;
}

static int key_letters(double pitch, int columns)
{
    return sh_gp_letters((pitch - 0.5) / columns - KEY_MARK);
}

/* Columns of all legends: two, or one where a name would be cut. */
static int key_columns(const struct sh_fig_measured_panels *d, double pitch)
{
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < d->panel[i].n_lines; k++)
            if (strlen(d->panel[i].lines[k].label) > (size_t)key_letters(pitch, 2))
                return 1;
    return 2;
}

static void legend(struct sh_gp *gp, const struct sh_fig_measured *m, double left, double top, const struct page *page)
{
    int columns = page->key_columns, letters = key_letters(page->pitch, columns);
    for (int i = 0; i < m->n_lines; i++)
        sh_gp_key(gp, i + 1, left + (page->pitch - 0.5) / columns * (i % columns), top + SH_GP_KEY * (i / columns),
                  &(struct sh_gp_key){m->lines[i].label, letters, i, dash_of(i)});
}

static void curves(struct sh_gp *gp, const struct sh_fig_measured *m, int panel)
{
    const char *separator = "plot ";
    for (int i = 0; i < m->n_lines; i++) {
        if (!m->lines[i].low)
            continue;
        fprintf(gp->to, "%s$p%dl%d using 1:3:4 with filledcurves ls %d fs transparent solid 0.15 noborder", separator,
                panel, i, i % SH_GP_COLOURS + 1);
        separator = ", \\\n    ";
    }
    for (int i = 0; i < m->n_lines; i++) {
        static const int mark[] = {7, 6, 4, 8, 10, 12};
        fprintf(gp->to, "%s$p%dl%d using 1:2 with linespoints", separator, panel, i);
        sh_gp_line_style(gp, i, dash_of(i));
        fprintf(gp->to, " pt %d ps 0.5", mark[dash_of(i)]);
        separator = ", \\\n    ";
    }
}

static void bars(struct sh_gp *gp, const struct sh_fig_measured *m, int panel, double bar)
{
    fprintf(gp->to, "set boxwidth %g absolute\nplot $p%dl0 using 1:2 with boxes ls 1 fs solid 0.55 border", bar, panel);
    for (int i = 1; i < m->n_lines; i++) {
        fprintf(gp->to, ", \\\n    $p%dl%d using 1:2 with histeps", panel, i);
        sh_gp_line_style(gp, i, dash_of(i));
        fputs(" lw 1.6", gp->to);
    }
}

static void draw_panel(struct sh_gp *gp, const struct sh_fig_measured *m, int number, double bar,
                       const struct page *page)
{
    double left = LEFT + page->pitch * (number % page->across), top = SH_GP_TOP + page->row * (number / page->across);
    sh_gp_box(gp, left, top, page->pitch - LEFT - RIGHT, TALL);
    axes(gp, m, page->pitch);
    legend(gp, m, left - 0.6, top + TALL + BELOW, page);
    if (!has_points(m))
        fputs("plot NaN notitle", gp->to);
    else if (bar > 0)
        bars(gp, m, number, bar);
    else
        curves(gp, m, number);
    fputs("\nunset label\nunset arrow\n", gp->to);
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
 * filled, the others as outlines. Two panels a row, the legend of each below it. */
static int draw(struct sh_gp *gp, const struct sh_fig_data *data, const struct sh_fig_measured_panels *d, double bar,
                struct sh_err *e)
{
    int most = 0, n = d->n;
    struct page page = {.across = sh_gp_columns(gp, PITCH_X, n > 1 ? 2 : 1)};
    double width = sh_gp_room(gp, page.across * PITCH_X + 0.25);
    page.pitch = (width - 0.25) / page.across;
    page.key_columns = key_columns(d, page.pitch);
    for (int i = 0; i < n; i++) {
        if (d->panel[i].n_lines < 1 || d->panel[i].n_lines > SH_MEASURED_LINES)
            return sh_misused(e, "a panel shows 1 to %d lines, found %d", SH_MEASURED_LINES, d->panel[i].n_lines);
        most = d->panel[i].n_lines > most ? d->panel[i].n_lines : most;
    }
    page.row = TALL + BELOW + SH_GP_KEY * ((most + page.key_columns - 1) / page.key_columns) + 0.6;
    sh_gp_page(gp, width, SH_GP_TOP - 0.55 + page.row * ((n + page.across - 1) / page.across), data->title,
               data->settings);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d->panel[i].n_lines; k++)
            block(gp, &d->panel[i], i, k);
    fputs("unset key\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int i = 0; i < n; i++)
        draw_panel(gp, &d->panel[i], i, bar, &page);
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static int draw_compression(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d, d->compression, 0, e);
}

static void caption_compression(FILE *to, const struct sh_fig_data *d)
{
    caption(to, d->compression);
    fputs(", over the compression of the cache", to);
}

const struct sh_figure sh_figure_compression = {
    .number = SH_FIG_compression, .name = "compression",
    .summary = "perplexity and accuracy over the compression of the cache", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw_compression, .caption = caption_compression};

static int draw_quant(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d, d->quant, 0, e);
}

static void caption_quant(FILE *to, const struct sh_fig_data *d)
{
    caption(to, d->quant);
}

const struct sh_figure sh_figure_quant = {
    .number = SH_FIG_quant, .name = "quant",
    .summary = "perplexity over the bits of keys and values, and over the bytes of the cache",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw_quant, .caption = caption_quant};

static int draw_drift(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d, d->drift, 0, e);
}

const struct sh_figure sh_figure_drift = {
    .number = SH_FIG_drift, .name = "drift",
    .summary = "agreement of the tokens kept by the live cache and by the replay, over the text",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw_drift};

static int draw_score_change(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return draw(gp, d, d->score_change, 0.1, e);
}

const struct sh_figure sh_figure_score_change = {
    .number = SH_FIG_score_change, .name = "score-change",
    .summary = "change of the attention scores when the cache is compressed", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw_score_change};
