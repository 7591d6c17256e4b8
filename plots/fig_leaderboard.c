/* SPDX-License-Identifier: Apache-2.0 */
/* The policies in order: a bar is the mean height of the budget curve, and marks are what is kept
 * at three budgets, so that it shows who is good only where there is room. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define LINE 0.24               /* inches, a policy */
#define BELOW 0.75              /* axis and its label */
#define NARROW 4.0              /* a board with fewer tics and one column of legend */

enum { SHARES = 3, MOST = 48, LABEL = 30, KEYS = 3 };
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

static void block(struct sh_gp *gp, const struct sh_fig_curves *set, int s, double low)
{
    fprintf(gp->to, "$board%d << EOD\n# place from height colour mass at the shares\n", s);
    for (int i = 0; i < set->n_curves; i++) {
        const struct sh_fig_curve *c = &set->curve[i];
        fprintf(gp->to, "%d ", i);
        sh_gp_real(gp, low);
        putc(' ', gp->to);
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

static double least(const struct sh_fig_curves *set)
{
    double low = 0.9;
    for (int i = 0; i < set->n_curves; i++) {
        low = fmin(low, set->curve[i].height);
        for (int k = 0; k < SHARES; k++)
            low = fmin(low, mass_at(&set->curve[i], nearest(set, wanted[k])));
    }
    return floor(fmax(low, 0) * 10 + 1e-9) / 10;
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
    return 0.084 * (most < LABEL ? (double)most : LABEL) + 0.35;
}

static void board(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int s, double low, int is_narrow, double key_top)
{
    const struct sh_fig_curves *set = &d->set[s];
    sh_gp_set(gp, "title", d->n > 1 ? set->title : "", 60);
    fprintf(gp->to, "set xrange [%g:1.0]\nset xtics %s\nset yrange [%d.6:-0.6]\nset ytics ", low,
            is_narrow && low < 0.7 ? "0, 0.2" : is_narrow ? "0, 0.1" : "auto", set->n_curves - 1);
    for (int i = 0; i < set->n_curves; i++)
        sh_gp_tic_at(gp, i, set->curve[i].label, LABEL);
    fputs(")\nset key at ", gp->to);
    if (is_narrow)
        sh_gp_at(gp, 0.2, key_top);
    else
        fprintf(gp->to, "graph 0, graph %.4f", -BELOW / (LINE * set->n_curves));
    fprintf(gp->to, " left top vertical maxrows %d Left reverse samplen 1\n", is_narrow ? 2 * KEYS : KEYS);
    for (int i = 0; i < set->n_curves; i++)
        if (!isfinite(set->curve[i].height))
            fprintf(gp->to, "set label 'too few of these budgets' at graph 0.01, first %d left tc rgb '#909090'\n", i);
    fprintf(gp->to, "plot $board%d using 2:1:2:3:($1-0.36):($1+0.36):4 with boxxyerror "
            "fs solid 0.75 noborder lc rgb variable notitle, \\\n"
            "    NaN with boxes fs solid 0.75 noborder lc rgb '#56B4E9' title 'mean height, budgets '.", s);
    sh_gp_text(gp, set->note ? set->note : "", 40);
    if (any(set, 1))
        fputs(", \\\n    NaN with boxes fs solid 0.75 noborder lc rgb '#404040' title 'sees the future'", gp->to);
    if (any(set, 0))
        fputs(", \\\n    NaN with boxes fs solid 0.75 noborder lc rgb '#c8c8c8' "
              "title 'keeps more than its budget'", gp->to);
    for (int k = 0; k < SHARES; k++)
        if (isfinite(nearest(set, wanted[k])))
            fprintf(gp->to, ", \\\n    '' using %d:1 with points ls %d pt %d ps 0.8 title "
                    "'at %.2g'", 5 + k, colour[k], mark[k], nearest(set, wanted[k]));
    fputs("\nunset label\n", gp->to);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_curve_sets *d = data->leaderboard;
    double top = d->n > 1 ? SH_GP_TOP : 0.8, height = top - 0.45, low = 1, page = sh_gp_room(gp, 9.2),
           left = names(d), wide = page - left - 0.3;
    int is_narrow = wide < NARROW;
    double row = BELOW + SH_GP_KEY * KEYS * (is_narrow ? 2 : 1) + 0.55;
    for (int s = 0; s < d->n; s++) {
        int n = d->set[s].n_curves;
        if (n < 1 || n > MOST)
            return sh_misused(e, "figure leaderboard shows 1 to %d policies, found %d", MOST, n);
        height += LINE * n + row;
        low = fmin(low, least(&d->set[s]));
    }
    sh_gp_page(gp, page, height, data->title, data->settings);
    for (int s = 0; s < d->n; s++)
        block(gp, &d->set[s], s, low);
    fputs("set xlabel 'kept attention mass'\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int s = 0; s < d->n; s++) {
        double tall = LINE * d->set[s].n_curves;
        sh_gp_box(gp, left, top, wide, tall);
        board(gp, d, s, low, is_narrow, top + tall + BELOW);
        top += tall + row;
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
    .summary = "policies by the mean height of their budget curves, and at three budgets", .most = 4,
    .parts = "sets of curves", .draw = draw, .caption = caption};
