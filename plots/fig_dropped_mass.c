/* SPDX-License-Identifier: Apache-2.0 */
/* Measured against the theory, one row of panels per trace: left the mass of what is dropped and what the law says it
 * should be, right what that does to the output and the bounds on it. Both on logarithmic axes, down to a millionth. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define FLOOR 1e-6

static int any(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (isfinite(x[i]) && x[i] > 0)
            return 1;
    return 0;
}

static void block(struct sh_gp *gp, const struct sh_fig_dropped *t, int i_trace)
{
    fprintf(gp->to, "$d%d << EOD\n# share measured least most law law_cut printed error\n", i_trace);
    for (int i = 0; i < t->n; i++)
        sh_gp_row(gp, (double[]){t->share[i], t->measured[i], t->least[i], t->most[i], t->law[i], t->law_cut[i],
                                 t->printed[i], t->error[i]}, 8);
    fputs("EOD\n", gp->to);
}

/* What the panels show: an entry of the legend each, and a line; `mass` on the left, else on the right. */
static const struct { int column, times, mass; const char *style, *name; } lines[] = {
    {2, 1, 1, "linespoints ls 1", "dropped mass, measured"},
    {5, 1, 1, "lines ls 2", "law D"},
    {6, 1, 1, "lines ls 12 lw 1.8", "law D, scores ≤ 1"},
    {2, 2, 0, "linespoints ls 5", "2 × measured (bound)"},
    {6, 2, 0, "lines ls 12 lw 1.8", "2 D, scores ≤ 1"},
    {7, 1, 0, "linespoints ls 4", "Theorem 4.1 as printed"},
    {8, 1, 0, "linespoints ls 3", "measured error"}};
enum { N_LINES = sizeof lines / sizeof *lines };

static const double *column(const struct sh_fig_dropped *t, int i)
{
    return ((const double *[]){t->share, t->measured, t->least, t->most, t->law, t->law_cut, t->printed,
                               t->error})[lines[i].column - 1];
}

static void panel(struct sh_gp *gp, const struct sh_fig_dropped *t, int i_trace, int mass)
{
    const char *separator = "plot ";
    if (mass) {
        fprintf(gp->to, "plot $d%d using 1:(floor_at($3)):(floor_at($4)) with filledcurves ls 1 "
                "fs transparent solid 0.3 noborder", i_trace);
        separator = ", \\\n    ";
    }
    for (int i = 0; i < N_LINES; i++)
        if (lines[i].mass == mass && (any(column(t, i), t->n) || lines[i].column == 2)) {
            fprintf(gp->to, "%s$d%d using 1:(over(%d * $%d)) with %s", separator, i_trace, lines[i].times,
                    lines[i].column, lines[i].style);
            separator = ", \\\n    ";
        }
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

/* What has no value in any trace is told as such. */
static void legend(struct sh_gp_grid *g, const struct sh_fig_drops *d)
{
    sh_gp_entry(g, "range over the layers", SH_GP_BAND, " fc ls 1 fs solid 0.3 noborder");
    for (int i = 0; i < N_LINES; i++) {
        int n = lines[i].column == 2;
        for (int k = 0; k < d->n; k++)
            n += any(column(&d->trace[k], i), d->trace[k].n);
        if (n)
            sh_gp_entry(g, lines[i].name, SH_GP_LINE, "%s", strchr(lines[i].style, ' '));
        else if (lines[i].column == 5)
            sh_gp_entry(g, "(law D has no value here)", SH_GP_LINE, " lc rgb '#ffffff'");
        else if (lines[i].column == 7)
            sh_gp_entry(g, "(Theorem 4.1 as printed says nothing)", SH_GP_LINE, " lc rgb '#ffffff'");
    }
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    static const char *const what[] = {"dropped mass", "output error / max |v|"};
    const struct sh_fig_drops *d = data->dropped_mass;
    for (int i = 0; i < d->n; i++)
        if (d->trace[i].n < 2)
            return sh_misused(e, "figure dropped-mass shows 2 or more budgets, found %d", d->trace[i].n);
    struct sh_gp_grid g = {.wide = 4.2, .tall = 3.0, .least = 0.6, .left = 0.5, .right = 0.12,
                           .below = 0.3, .last = 0.2, .most = 2};
    legend(&g, d);
    for (int i = 0; i < 2 * d->n; i++)
        sh_gp_titled(&g, d->n > 1 ? d->trace[i / 2].title : what[i % 2], d->n > 1 ? what[i % 2] : NULL);
    sh_gp_lay_out(gp, &g, 2 * d->n);
    for (int i = 0; i < d->n; i++)
        block(gp, &d->trace[i], i);
    fprintf(gp->to, "floor_at(y) = y == y ? (y < %g ? %g : y) : NaN\nover(y) = y >= %g ? y : NaN\n"
            "set xrange [0:1]\nset xtics 0, %s, 1\n", FLOOR, FLOOR, FLOOR, g.wide < 2 ? "0.5" : "0.2");
    sh_gp_log_axis(gp, FLOOR, 2.7, sh_gp_row_tics(g.tall));
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        const struct sh_fig_dropped *t = &d->trace[g.at[i] / 2];
        int mass = g.at[i] % 2 == 0;
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->n > 1 ? t->title : what[!mass], d->n > 1 ? what[!mass] : NULL);
        sh_gp_axis_label(gp, "xlabel", "share of scores kept", g.wide + g.left, sh_gp_is_last(&g, i));
        panel(gp, t, g.at[i] / 2, mass);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_drops *d = data->dropped_mass;
    int law = 0, printed = 0, error = 0;
    for (int i = 0; i < d->n; i++) {
        const struct sh_fig_dropped *t = &d->trace[i];
        law |= any(t->law, t->n) || any(t->law_cut, t->n);
        printed |= any(t->printed, t->n);
        error |= any(t->error, t->n);
    }
    fprintf(to, "the least mass that eviction can drop%s; bounds on the output error%s%s",
            law ? ", compared with law D" : "", printed ? ", with the theorem" : "",
            error ? ", and the measured output error" : "");
}

const struct sh_figure sh_figure_dropped_mass = {
    .number = SH_FIG_dropped_mass, .name = "dropped-mass",
    .summary = "the mass that eviction drops, compared with the law and the theorem", .most = 4, .parts = "traces",
    .draw = draw, .caption = caption};
