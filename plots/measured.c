/* SPDX-License-Identifier: Apache-2.0 */
/* See measured.h. */
#include "plots/measured.h"

#include <math.h>

#include "plots/figure.h"

#define WIDE 4.7                /* inches, a panel without its margins */
#define TALL 3.1
#define LEFT 0.95
#define TOP 1.05
#define PITCH_X 5.85
#define BELOW 0.68              /* axis and its label */
#define KEY 0.2                 /* a line of the legend */

enum { COLUMNS = 2, LETTERS = 27 };

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

static void axes(struct sh_gp *gp, const struct sh_fig_measured *m)
{
    fputs("set title ", gp->to);
    sh_gp_text(gp, m->title, 52);
    fputs("\nset xlabel ", gp->to);
    sh_gp_text(gp, m->x, 60);
    fputs("\nset ylabel ", gp->to);
    sh_gp_text(gp, m->y, 46);
    if (!has_points(m)) {
        fputs("\nunset logscale\nset xrange [0:1]\nset yrange [0:1]\n"
              "set label 901 'no values' at graph 0.5, graph 0.5 center tc rgb '#606060'\n", gp->to);
        return;
    }
    fprintf(gp->to, "\n%s\n%s\nset xrange [*:*]\nset yrange [", m->is_log_x ? "set logscale x 2" : "unset logscale x",
            m->is_log_y ? "set logscale y 10" : "unset logscale y");
    limit(gp, m->floor);
    putc(':', gp->to);
    limit(gp, m->ceiling);
    fputs("]\n", gp->to);
}

/* Colours first, then the same dashed and with hollow marks. */
static int style_of(int line)
{
    return line % SH_GP_COLOURS + 1 + (line < SH_GP_COLOURS ? 0 : 10);
}

static void legend(struct sh_gp *gp, const struct sh_fig_measured *m, double left, double top)
{
    for (int i = 0; i < m->n_lines; i++) {
        double x = left + (WIDE + 0.5) / COLUMNS * (i % COLUMNS), y = top + KEY * (i / COLUMNS);
        fprintf(gp->to, "set arrow %d from ", i + 1);
        sh_gp_at(gp, x, y);
        fputs(" to ", gp->to);
        sh_gp_at(gp, x + 0.3, y);
        fprintf(gp->to, " nohead ls %d\nset label %d ", style_of(i), i + 1);
        sh_gp_text(gp, m->lines[i].label, LETTERS);
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

static void draw_panel(struct sh_gp *gp, const struct sh_fig_measured *m, int number, double top, double bar)
{
    double left = LEFT + PITCH_X * (number % 2);
    sh_gp_box(gp, left, top, WIDE, TALL);
    axes(gp, m);
    legend(gp, m, left - 0.45, top + TALL + BELOW);
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
    int most = 0, n = d->n_measured;
    for (int i = 0; i < n; i++) {
        if (d->measured[i].n_lines < 1 || d->measured[i].n_lines > SH_MEASURED_LINES)
            return sh_misused(e, "a panel shows 1 to %d lines, found %d", SH_MEASURED_LINES, d->measured[i].n_lines);
        most = d->measured[i].n_lines > most ? d->measured[i].n_lines : most;
    }
    double pitch = TALL + BELOW + KEY * ((most + COLUMNS - 1) / COLUMNS) + 0.75;
    sh_gp_page(gp, n > 1 ? 2 * PITCH_X + 0.25 : PITCH_X + 0.25, TOP - 0.55 + pitch * ((n + 1) / 2));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d->measured[i].n_lines; k++)
            block(gp, &d->measured[i], i, k);
    fputs("unset key\nset multiplot\n", gp->to);
    sh_gp_heading(gp, d->title, d->settings);
    for (int i = 0; i < n; i++)
        draw_panel(gp, &d->measured[i], i, TOP + pitch * (i / 2), bar);
    fputs("unset multiplot\n", gp->to);
    return 0;
}
