/* SPDX-License-Identifier: Apache-2.0 */
/* What every policy keeps, over the share of the sequence that it may keep: the attention mass with
 * its bootstrap interval, and in further panels what else was measured. One look per policy in all
 * panels and traces; the bounds that see the future are black. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define TALL 3.0                /* inches, a panel without its margins */
#define PITCH_X 5.1             /* from one to the next, where there is room */
#define PITCH_Y 4.2
#define MARGINS 0.9
#define KEY_PITCH 3.1           /* a column of the legend */

enum { PANELS = 4, COLOURS = 6, DASHES = 4, MOST = 48 };

static const struct { const char *title, *axis; int column; } panels[PANELS] = {
    {"kept attention mass", "kept mass", 2},
    {"without sinks and the newest token", "kept mass", 5},
    {"pivotal tokens (score above 1/n)", "share kept", 6},
    {"error of the attention output", "relative error", 7}};

static const double *values(const struct sh_fig_curve *c, int panel)
{
    return ((const double *[PANELS]){c->mass, c->no_sink, c->pivotal, c->error})[panel];
}

static int has_values(const struct sh_fig_curves *set, int panel)
{
    for (int i = 0; i < set->n_curves; i++)
        for (int k = 0; k < set->curve[i].n; k++)
            if (isfinite(values(&set->curve[i], panel)[k]))
                return 1;
    return 0;
}

/* ---- looks ---- */

static int is_same(const struct sh_fig_curve *a, const struct sh_fig_curve *b)
{
    return a->is_bound == b->is_bound && a->is_over == b->is_over && !strcmp(a->label, b->label);
}

/* Is curve i of trace s the first of its name and kind? */
static int is_new(const struct sh_fig_curve_sets *d, int s, int i)
{
    for (int k = 0; k <= s; k++)
        for (int j = 0; j < (k < s ? d->set[k].n_curves : i); j++)
            if (is_same(&d->set[k].curve[j], &d->set[s].curve[i]))
                return 0;
    return 1;
}

/* Its number among the names of its kind. */
static int place(const struct sh_fig_curve_sets *d, const struct sh_fig_curve *c)
{
    int n = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *at = &d->set[s].curve[i];
            if (is_same(at, c))
                return n;
            n += at->is_bound == c->is_bound && at->is_over == c->is_over && is_new(d, s, i);
        }
    return n;
}

/* Six colours, then the same with other dashes and marks. A few marks tell a line. */
static void look(struct sh_gp *gp, const struct sh_fig_curve_sets *d, const struct sh_fig_curve *c)
{
    static const char *const dash[DASHES] = {"1", "(16,8)", "(4,6)", "(18,6,4,6)"};
    static const int mark[DASHES] = {7, 8, 5, 2};
    int n = place(d, c);
    if (c->is_bound)
        fprintf(gp->to, "with lines lc rgb '#000000' lw 2.4 dt %s", dash[n % DASHES]);
    else if (c->is_over)
        fprintf(gp->to, "with lines lc rgb '#a0a0a0' lw 1.5 dt %s", dash[n % DASHES]);
    else
        fprintf(gp->to, "with linespoints ls %d dt %s pt %d ps 0.45 pi %d", n % COLOURS + 1,
                dash[n / COLOURS % DASHES], mark[n / COLOURS % DASHES], 1 + c->n / 3);
}

/* ---- the parts of the page ---- */

static void blocks(struct sh_gp *gp, const struct sh_fig_curve_sets *d)
{
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            fprintf(gp->to, "$s%dc%d << EOD\n# ", s, i);
            sh_gp_text(gp, c->label, 200);
            fputs("\n# share mass low high no_sink pivotal error\n", gp->to);
            for (int k = 0; k < c->n; k++)
                sh_gp_row(gp, (double[]){c->share[k], c->mass[k], c->low[k], c->high[k], c->no_sink[k], c->pivotal[k],
                                         c->error[k]}, 7);
            fputs("EOD\n", gp->to);
        }
}

/* From a tenth below the least value to just above 1; errors from 0 to the largest, at most 1.5. */
static void y_range(struct sh_gp *gp, const struct sh_fig_curves *set, int panel)
{
    double low = 1, high = 0;
    for (int i = 0; i < set->n_curves; i++)
        for (int k = 0; k < set->curve[i].n; k++) {
            double y = values(&set->curve[i], panel)[k];
            low = y < low ? y : low;
            high = y > high ? y : high;
        }
    if (panel == PANELS - 1)
        fprintf(gp->to, "set yrange [0:%.4g]\nset ytics %s\n", fmin(1.5, fmax(1.05 * high, 0.01)),
                high < 0.1 ? "auto" : high < 0.6 ? "0, 0.1" : "0, 0.5");
    else
        fprintf(gp->to, "set yrange [%.1f:1.01]\nset ytics 0, 0.2\n", floor(fmax(low, 0) * 10 + 1e-9) / 10);
}

static void panel(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int s, int p)
{
    const struct sh_fig_curves *set = &d->set[s];
    const char *separator = "plot ";
    fputs("set title ", gp->to);
    if (d->n > 1) {
        sh_gp_text(gp, set->title, 26);
        fputs(".': '.", gp->to);
    }
    fprintf(gp->to, "'%s'\nset ylabel '%s'\n", panels[p].title, panels[p].axis);
    y_range(gp, set, p);
    for (int i = 0; i < set->n_curves && p == 0; i++) {
        if (set->curve[i].is_bound || set->curve[i].is_over)
            continue;
        fprintf(gp->to, "%s$s%dc%d using 1:3:4 with filledcurves ls %d fs transparent solid 0.15 "
                "noborder", separator, s, i, place(d, &set->curve[i]) % COLOURS + 1);
        separator = ", \\\n    ";
    }
    for (int i = 0; i < set->n_curves; i++) {
        fprintf(gp->to, "%s$s%dc%d using 1:%d ", separator, s, i, panels[p].column);
        look(gp, d, &set->curve[i]);
        separator = ", \\\n    ";
    }
    fputs("\nunset label\n", gp->to);
}

/* ---- the legend: every name once, in columns below the panels ---- */

static int n_names(const struct sh_fig_curve_sets *d)
{
    int n = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++)
            n += is_new(d, s, i);
    return n;
}

/* Draws nothing but names [from, to), and after the last one what a band means. */
static void legend_column(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int from, int to)
{
    int n = 0;
    fputs("plot \\\n", gp->to);
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            if (!is_new(d, s, i) || n++ < from || n > to)
                continue;
            fputs("    NaN ", gp->to);
            look(gp, d, c);
            fputs(" title ", gp->to);
            sh_gp_text(gp, c->label, 28);
            fputs(c->is_bound ? ".' (sees the future)', \\\n"
                  : c->is_over ? ".' (keeps more)', \\\n" : ", \\\n", gp->to);
        }
    fputs(to >= n ? "    NaN with filledcurves y1=0 fc rgb '#808080' fs solid 0.3 noborder title "
          "'95 % interval'\n" : "    NaN notitle\n", gp->to);
}

static void legend(struct sh_gp *gp, const struct sh_fig_curve_sets *d, double width, double top, double tall,
                   int n_columns)
{
    double pitch = (width - 0.4) / n_columns;
    int rows = (n_names(d) + n_columns) / n_columns;
    fputs("set key left top vertical Left reverse samplen 3\n"
          "unset border\nunset tics\nunset grid\nunset xlabel\nunset ylabel\nunset title\n"
          "set xrange [0:1]\nset yrange [0:1]\n", gp->to);
    for (int c = 0; c < n_columns; c++) {
        sh_gp_box(gp, 0.4 + pitch * c, top, pitch - 0.1, tall);
        legend_column(gp, d, c * rows, (c + 1) * rows);
    }
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_curve_sets *d = data->budget_curve;
    int n_rows = 0, row = 0, n_columns = sh_gp_columns(gp, PITCH_X, 2);
    double width = sh_gp_room(gp, 0.3 + PITCH_X * n_columns), pitch = (width - 0.3) / n_columns;
    int n_keys = (int)fmax(1, (width - 0.4) / KEY_PITCH);
    for (int s = 0; s < d->n; s++) {
        int n = 0;
        if (d->set[s].n_curves < 1 || d->set[s].n_curves > MOST)
            return sh_misused(e, "figure budget-curve shows 1 to %d policies, found %d", MOST, d->set[s].n_curves);
        for (int p = 0; p < PANELS; p++)
            n += p == 0 || has_values(&d->set[s], p);
        n_rows += (n + n_columns - 1) / n_columns;
    }
    double key_in = SH_GP_KEY * ((n_names(d) + n_keys) / n_keys) + 0.15,
           height = 0.85 + PITCH_Y * n_rows + key_in;
    sh_gp_page(gp, width, height, data->title, data->settings);
    blocks(gp, d);
    fputs("set xlabel 'budget, as a share of the sequence'\nset xrange [0:1]\n"
          "set xtics 0, 0.25, 1\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int s = 0; s < d->n; s++) {
        int n = 0;
        for (int p = 0; p < PANELS; p++)
            if (p == 0 || has_values(&d->set[s], p)) {
                sh_gp_box(gp, 0.85 + pitch * (n % n_columns), SH_GP_TOP + PITCH_Y * (row + n / n_columns),
                          pitch - MARGINS, TALL);
                panel(gp, d, s, p);
                n++;
            }
        row += (n + n_columns - 1) / n_columns;
    }
    legend(gp, d, width, height - key_in - 0.05, key_in, n_keys);
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_curve_sets *d = data->budget_curve;
    int has_bound = 0, has_error = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            has_bound |= c->is_bound;
            for (int k = 0; k < c->n; k++)
                has_error |= isfinite(c->error[k]);
        }
    fprintf(to, "attention that each policy keeps%s, over its budget%s",
            has_error ? ", and the error of the output" : "", has_bound ? ", with the oracles" : "");
}

const struct sh_figure sh_figure_budget_curve = {
    .number = SH_FIG_budget_curve, .name = "budget-curve",
    .summary = "attention that each policy keeps, over its budget, with the oracles", .most = 4,
    .parts = "sets of curves", .draw = draw, .caption = caption};
