/* SPDX-License-Identifier: Apache-2.0 */
/* The policies in order: a bar is the mean height of the budget curve, and marks are what is kept
 * at three budgets, so that it shows who is good only where there is room. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/figure.h"

#define LINE 0.24               /* inches, a policy */
#define LEAST_LINE 0.12
#define LETTERS_LINE 0.15       /* below which names are set smaller */
#define NARROW 4.0              /* a board with fewer tics */

enum { SHARES = 3, MOST = 48, LABEL = 30 };
static const double wanted[SHARES] = {0.1, 0.2, 0.5};
static const int mark[SHARES] = {7, 5, 9}, colour[SHARES] = {2, 4, 3};

/* Of all shares of the set the one nearest to the wanted one; NaN: none within 0.05. */
static double nearest(const struct sh_fig_curves *set, double share)
{
    double best = (double)NAN;
    for (int i = 0; i < set->n_curves; i++)
        for (int k = 0; k < set->curve[i].n; k++)
            if (isnan(best) || fabs(set->curve[i].share[k] - share) < fabs(best - share))
                best = set->curve[i].share[k];
    return fabs(best - share) <= 0.05 ? best : (double)NAN;
}

static double mass_at(const struct sh_fig_curve *c, double share)
{
    for (int k = 0; k < c->n; k++)
        if (fabs(c->share[k] - share) < 1e-9)
            return c->mass[k];
    return (double)NAN;
}

static void block(struct sh_gp *gp, const struct sh_fig_curves *set, int s)
{
    fprintf(gp->to, "$board%d << EOD\n# place height colour mass at the shares\n", s);
    for (int i = 0; i < set->n_curves; i++) {
        const struct sh_fig_curve *c = &set->curve[i];
        fprintf(gp->to, "%d ", i);
        sh_gp_real(gp, c->height);
        fputs(c->is_bound ? " 0x404040" : c->is_over ? " 0xc8c8c8" : " 0x56B4E9", gp->to);
        for (int k = 0; k < SHARES; k++) {
            putc(' ', gp->to);
            sh_gp_real(gp, mass_at(c, nearest(set, wanted[k])));
        }
        putc('\n', gp->to);
    }
    fputs("EOD\n", gp->to);
}

/* Is there a bound, or else one that keeps more than its budget? */
static int any(const struct sh_fig_curves *set, int bound)
{
    for (int i = 0; i < set->n_curves; i++)
        if (bound ? set->curve[i].is_bound : set->curve[i].is_over)
            return 1;
    return 0;
}

/* Inches that the longest name takes. */
static double names(const struct sh_fig_curve_sets *d)
{
    size_t most = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            size_t n = strlen(d->set[s].curve[i].label);
            most = n > most ? n : most;
        }
    return 0.081 * (most < LABEL ? (double)most : LABEL) + 0.1;
}

static void board(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int s, int is_narrow, double line)
{
    const struct sh_fig_curves *set = &d->set[s];
    fprintf(gp->to, "set xrange [0:1]\nset xtics 0, %s\nset yrange [%d.6:-0.6]\nset ytics ", is_narrow ? "0.2" : "0.1",
            set->n_curves - 1);
    for (int i = 0; i < set->n_curves; i++)
        sh_gp_tic_at(gp, i, set->curve[i].label, LABEL);
    putc(')', gp->to);
    if (line < LETTERS_LINE)
        sh_gp_small(gp, line / LETTERS_LINE);
    putc('\n', gp->to);
    for (int i = 0; i < set->n_curves; i++)
        if (!isfinite(set->curve[i].height))
            fprintf(gp->to, "set label 'too few of these budgets' at graph 0.01, first %d left tc rgb '#909090'\n", i);
    fprintf(gp->to, "plot $board%d using 2:1:(0):2:($1-0.36):($1+0.36):3 with boxxyerror "
            "fs solid 0.75 noborder lc rgb variable", s);
    for (int k = 0; k < SHARES; k++)
        if (isfinite(nearest(set, wanted[k])))
            fprintf(gp->to, ", \\\n    '' using %d:1 with points ls %d pt %d ps 0.8", 4 + k, colour[k], mark[k]);
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

/* One legend for all boards; shares are those of the first. */
static void legend(struct sh_gp_grid *g, const struct sh_fig_curve_sets *d, char heights[80], char at[SHARES][16])
{
    int bound = 0, over = 0;
    for (int s = 0; s < d->n; s++) {
        bound |= any(&d->set[s], 1);
        over |= any(&d->set[s], 0);
    }
    snprintf(heights, 80, "mean height, budgets %.40s", d->set[0].note ? d->set[0].note : "");
    sh_gp_entry(g, heights, SH_GP_BAND, " fc rgb '#56B4E9' fs solid 0.75 noborder");
    if (bound)
        sh_gp_entry(g, "sees the future", SH_GP_BAND, " fc rgb '#404040' fs solid 0.75 noborder");
    if (over)
        sh_gp_entry(g, "keeps more than its budget", SH_GP_BAND, " fc rgb '#c8c8c8' fs solid 0.75 noborder");
    for (int k = 0; k < SHARES; k++)
        if (isfinite(nearest(&d->set[0], wanted[k]))) {
            snprintf(at[k], sizeof at[k], "at %.2g", nearest(&d->set[0], wanted[k]));
            sh_gp_entry(g, at[k], SH_GP_MARK, " ls %d pt %d ps 0.8", colour[k], mark[k]);
        }
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_curve_sets *d = data->leaderboard;
    char heights[80], at[SHARES][16];
    int most = 0;
    for (int s = 0; s < d->n; s++) {
        int n = d->set[s].n_curves;
        if (n < 1 || n > MOST)
            return sh_misused(e, "figure leaderboard shows 1 to %d policies, found %d", MOST, n);
        most = n > most ? n : most;
    }
    double left = names(d);
    struct sh_gp_grid g = {.wide = 8.7 - left, .tall = LINE * most, .least = LEAST_LINE * most, .left = left,
                           .right = 0.15, .below = 0.3, .last = 0.2, .most = 1};
    legend(&g, d, heights, at);
    for (int s = 0; s < d->n && d->n > 1; s++)
        sh_gp_titled(&g, d->set[s].title, NULL);
    sh_gp_lay_out(gp, &g, d->n);
    for (int s = 0; s < d->n; s++)
        block(gp, &d->set[s], s);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->n > 1 ? d->set[g.at[i]].title : "", NULL);
        sh_gp_axis_label(gp, "xlabel", "kept attention mass", g.wide, sh_gp_is_last(&g, i));
        board(gp, d, g.at[i], g.wide < NARROW, g.tall / most);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_curve_sets *d = data->leaderboard;
    int n = 0;
    for (int k = 0; k < SHARES; k++)
        n += isfinite(nearest(&d->set[0], wanted[k])) != 0;
    fprintf(to, "policies by the mean height of their budget curves%s", n > 1 ? ", and at single budgets" : "");
}

const struct sh_figure sh_figure_leaderboard = {
    .number = SH_FIG_leaderboard, .name = "leaderboard",
    .summary = "policies ranked by the mean height of their budget curves, and at three budgets", .most = 4,
    .parts = "sets of curves", .draw = draw, .caption = caption};
