/* SPDX-License-Identifier: Apache-2.0 */
/* Measured against the theory, one row of panels per trace: left the mass of what is dropped and what the law says it
 * should be, right what that does to the output and the bounds on it. Both on logarithmic axes, down to a millionth. */
#include <math.h>

#include "plots/figure.h"

#define TALL 3.0                /* inches, a panel without its margins */
#define PITCH_X 5.2             /* from one to the next, where there is room */
#define MARGINS 1.0
#define PITCH_Y 5.1
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

/* A note in the legend for what has no value anywhere. */
static void absent(struct sh_gp *gp, const char *what)
{
    fprintf(gp->to, ", \\\n    NaN with lines lc rgb '#ffffff' title '%s'", what);
}

static void mass(struct sh_gp *gp, const struct sh_fig_dropped *t, int i)
{
    fputs("set title ", gp->to);
    sh_gp_text(gp, t->title, 40);
    fprintf(gp->to, ".': dropped mass'\nset ylabel 'share of the attention mass'\n"
            "plot $d%d using 1:(floor_at($3)):(floor_at($4)) with filledcurves ls 1 "
            "fs transparent solid 0.2 noborder title 'range over the layers', \\\n"
            "    '' using 1:(over($2)) with linespoints ls 1 title 'measured'", i);
    if (any(t->law, t->n))
        fputs(", \\\n    '' using 1:(over($5)) with lines ls 2 title 'law D'", gp->to);
    else
        absent(gp, "(law D has no value here)");
    if (any(t->law_cut, t->n))
        fputs(", \\\n    '' using 1:(over($6)) with lines ls 12 lw 1.8 title 'law D, scores at most 1'", gp->to);
    else
        absent(gp, "(nor with scores at most 1)");
    fputs("\n", gp->to);
}

static void output(struct sh_gp *gp, const struct sh_fig_dropped *t, int i)
{
    fprintf(gp->to, "set title 'error of the output'\n"
            "set ylabel 'error in units of max |v|'\n"
            "plot $d%d using 1:(over(2 * $2)) with linespoints ls 5 title '2 x measured (bound)'", i);
    if (any(t->law_cut, t->n))
        fputs(", \\\n    '' using 1:(over(2 * $6)) with lines ls 12 lw 1.8 title '2 D, scores at most 1'", gp->to);
    if (any(t->printed, t->n))
        fputs(", \\\n    '' using 1:(over($7)) with linespoints ls 4 "
              "title 'Theorem 4.1 as printed, where defined'", gp->to);
    else
        absent(gp, "(Theorem 4.1 as printed says nothing)");
    if (any(t->error, t->n))
        fputs(", \\\n    '' using 1:(over($8)) with linespoints ls 3 title 'measured error'", gp->to);
    fputs("\n", gp->to);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_drops *d = data->dropped_mass;
    for (int i = 0; i < d->n; i++)
        if (d->trace[i].n < 2)
            return sh_misused(e, "figure dropped-mass shows 2 or more budgets, found %d", d->trace[i].n);
    int n_columns = sh_gp_columns(gp, PITCH_X, 2), n_rows = d->n * (2 / n_columns);
    double width = sh_gp_room(gp, 0.4 + n_columns * PITCH_X), pitch = (width - 0.4) / n_columns;
    sh_gp_page(gp, width, 0.75 + PITCH_Y * n_rows, data->title, data->settings);
    for (int i = 0; i < d->n; i++)
        block(gp, &d->trace[i], i);
    fprintf(gp->to, "floor_at(y) = y == y ? (y < %g ? %g : y) : NaN\nover(y) = y >= %g ? y : NaN\n"
            "set logscale y\nset xrange [0:1]\nset xtics 0, 0.2, 1\n"
            "set ytics ('1' 1, '10⁻¹' 1e-1, '10⁻²' 1e-2, '10⁻³' 1e-3, '10⁻⁴' 1e-4, "
            "'10⁻⁵' 1e-5, '10⁻⁶' 1e-6)\n"
            "set yrange [%g:3]\nset xlabel 'share of the scores that is kept'\n"
            "set key at graph 0, graph -0.27 left top vertical Left reverse samplen 2\n"
            "set multiplot\n", FLOOR, FLOOR, FLOOR, FLOOR);
    sh_gp_heading(gp);
    for (int i = 0; i < d->n; i++) {
        int at = 2 * i;
        sh_gp_box(gp, 0.95, SH_GP_TOP + PITCH_Y * (at / n_columns), pitch - MARGINS, TALL);
        mass(gp, &d->trace[i], i);
        fputs("unset label\n", gp->to);
        at++;
        sh_gp_box(gp, 0.95 + pitch * (at % n_columns), SH_GP_TOP + PITCH_Y * (at / n_columns), pitch - MARGINS, TALL);
        output(gp, &d->trace[i], i);
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
    fprintf(to, "the least mass that eviction can drop%s; bounds on the error of the output%s%s",
            law ? ", compared with the law" : "", printed ? ", with the theorem" : "",
            error ? ", and the measured error" : "");
}

const struct sh_figure sh_figure_dropped_mass = {
    .number = SH_FIG_dropped_mass, .name = "dropped-mass",
    .summary = "the mass that eviction drops, compared with the law and the theorem", .most = 4, .parts = "traces",
    .draw = draw, .caption = caption};
