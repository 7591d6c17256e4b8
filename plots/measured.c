/* SPDX-License-Identifier: Apache-2.0 */
/* See measured.h. */
#include "plots/measured.h"

#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define WIDE 4.7                /* inches, a panel without its margins */
#define TALL 3.1
#define LEFT 0.95
#define TOP 1.05
#define PITCH_X 5.85
#define BELOW 0.68              /* axis and its label */
#define KEY 0.2                 /* a line of the legend */

enum { LETTERS = 27 };          /* of a name in one of two columns */

static double shown(double v, int is_log)
{
    return is_log && !(v > 0) ? (double)NAN : v;
}

static void block(struct sh_gp *gp, const struct sh_fig_measured *m, int panel, int line)
{
    const struct sh_fig_measured_line *l = &m->lines[line];
    fprintf(gp->to, "$p%dl%d << EOD\n# x y low high\n", panel, line);
    for (int k = 0; k < l->n; k++) {
        const double column[4] = {shown(l->x[k], m->is_log_x), shown(l->y[k], m->is_log_y),
                                  shown(l->low ? l->low[k] : (double)NAN, m->is_log_y),
                                  shown(l->high ? l->high[k] : (double)NAN, m->is_log_y)};
        for (int c = 0; c < 4; c++) {
            sh_gp_real(gp, column[c]);
            putc(c < 3 ? ' ' : '\n', gp->to);
        }
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

/* 1, 2 and 5 of every decade, or over many decades 1 alone. */
static void decade_tics(struct sh_gp *gp, const struct sh_fig_measured *m)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < m->n_lines; i++)
        for (int k = 0; k < m->lines[i].n; k++) {
            const struct sh_fig_measured_line *l = &m->lines[i];
            widen(shown(l->y[k], 1), &low, &high);
            widen(shown(l->low ? l->low[k] : (double)NAN, 1), &low, &high);
            widen(shown(l->high ? l->high[k] : (double)NAN, 1), &low, &high);
        }
    fprintf(gp->to, "set yrange [%.6g:%.6g]\n", low / 1.1, high * 1.1);
    int few = high / low > 2000, one = high / low < 3;
    const char *separator = "set ytics (";
    for (double unit = pow(10, floor(log10(low / 1.1))); unit <= high * 1.1; unit *= 10)
        for (int n = 10; n < 100; n++) {
            double at = unit * n / 10;
            if (at < low / 1.1 || at > high * 1.1 || (n != 10 && few) ||
                (one ? n % (n < 30 ? 2 : 5) : n != 10 && n != 20 && n != 50))
                continue;
            fprintf(gp->to, "%s'%g' %g", separator, at, at);
            separator = ", ";
        }
    fputs(*separator == ',' ? ")\n" : "set ytics auto\n", gp->to);
}

static void axes(struct sh_gp *gp, const struct sh_fig_measured *m)
{
    fputs("set title ", gp->to);
    sh_gp_text(gp, m->title, 52);
    fputs("\nset xlabel ", gp->to);
    sh_gp_text(gp, m->x, 60);
    fputs("\nset ylabel ", gp->to);
    sh_gp_text(gp, m->y, 46);
    fputs("\nunset logscale\nset xtics auto\nset ytics auto\nset xrange [*:*]\n", gp->to);
    if (!has_points(m)) {
        fputs("set xrange [0:1]\nset yrange [0:1]\n"
              "set label 901 'no values' at graph 0.5, graph 0.5 center tc rgb '#606060'\n", gp->to);
        return;
    }
    if (m->is_log_x) {
        fputs("set logscale x 10\n", gp->to);
        value_tics(gp, m);
    }
    fputs("set yrange [", gp->to);
    limit(gp, m->floor);
    putc(':', gp->to);
    limit(gp, m->ceiling);
    fputs("]\n", gp->to);
    if (m->is_log_y) {
        fputs("set logscale y 10\n", gp->to);
        decade_tics(gp, m);
    }
}

/* Colours first, then the same dashed and with hollow marks. */
static int style_of(int line)
{
    return line % SH_GP_COLOURS + 1 + (line < SH_GP_COLOURS ? 0 : 10);
}

/* Columns of all legends: two, or one where a name would be cut. */
static int key_columns(const struct sh_fig_data *d)
{
    for (int i = 0; i < d->n_measured; i++)
        for (int k = 0; k < d->measured[i].n_lines; k++)
            if (strlen(d->measured[i].lines[k].label) > LETTERS)
                return 1;
    return 2;
}

static void legend(struct sh_gp *gp, const struct sh_fig_measured *m, double left, double top, int columns)
{
    for (int i = 0; i < m->n_lines; i++) {
        double x = left + (WIDE + 0.5) / columns * (i % columns), y = top + KEY * (i / columns);
        fprintf(gp->to, "set arrow %d from ", i + 1);
        sh_gp_at(gp, x, y);
        fputs(" to ", gp->to);
        sh_gp_at(gp, x + 0.3, y);
        fprintf(gp->to, " nohead ls %d\nset label %d ", style_of(i), i + 1);
        sh_gp_text(gp, m->lines[i].label, columns == 1 ? 2 * LETTERS : LETTERS);
        fputs(" at ", gp->to);
        sh_gp_at(gp, x + 0.38, y);
        fputs(" left\n", gp->to);
    }
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
        fprintf(gp->to, "%s$p%dl%d using 1:2 with linespoints ls %d pt %d ps 0.5", separator, panel, i, style_of(i),
                i < SH_GP_COLOURS ? 7 : 6);
        separator = ", \\\n    ";
    }
}

static void bars(struct sh_gp *gp, const struct sh_fig_measured *m, int panel, double bar)
{
    fprintf(gp->to, "set boxwidth %g absolute\nplot $p%dl0 using 1:2 with boxes ls 1 fs solid 0.55 border", bar, panel);
    for (int i = 1; i < m->n_lines; i++)
        fprintf(gp->to, ", \\\n    $p%dl%d using 1:2 with histeps ls %d lw 1.6", panel, i, style_of(i));
}

static void draw_panel(struct sh_gp *gp, const struct sh_fig_measured *m, int number, double top, double bar,
                       int columns)
{
    double left = LEFT + PITCH_X * (number % 2);
    sh_gp_box(gp, left, top, WIDE, TALL);
    axes(gp, m);
    legend(gp, m, left - 0.45, top + TALL + BELOW, columns);
    if (!has_points(m))
        fputs("plot NaN notitle", gp->to);
    else if (bar > 0)
        bars(gp, m, number, bar);
    else
        curves(gp, m, number);
    fputs("\nunset label\nunset arrow\n", gp->to);
}

int sh_measured_draw(struct sh_gp *gp, const struct sh_fig_data *d, double bar, struct sh_err *e)
{
    int most = 0, n = d->n_measured, columns = key_columns(d);
    for (int i = 0; i < n; i++) {
        if (d->measured[i].n_lines < 1 || d->measured[i].n_lines > SH_MEASURED_LINES)
            return sh_misused(e, "a panel shows 1 to %d lines, found %d", SH_MEASURED_LINES, d->measured[i].n_lines);
        most = d->measured[i].n_lines > most ? d->measured[i].n_lines : most;
    }
    double pitch = TALL + BELOW + KEY * ((most + columns - 1) / columns) + 0.75;
    sh_gp_page(gp, n > 1 ? 2 * PITCH_X + 0.25 : PITCH_X + 0.25, TOP - 0.55 + pitch * ((n + 1) / 2));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d->measured[i].n_lines; k++)
            block(gp, &d->measured[i], i, k);
    fputs("unset key\nset multiplot\n", gp->to);
    sh_gp_heading(gp, d->title, d->settings);
    for (int i = 0; i < n; i++)
        draw_panel(gp, &d->measured[i], i, TOP + pitch * (i / 2), bar, columns);
    fputs("unset multiplot\n", gp->to);
    return 0;
}
