/* SPDX-License-Identifier: Apache-2.0 */
/* How much the lift depends on what is called pivotal: the threshold upwards, the recent tokens
 * left out to the right. A cell says its number; a hatched one that no pivotal token was left. */
#include <math.h>

#include "plots/figure.h"

static double cell(const struct sh_fig_grid *g, int a, int r)
{
    return g->lift[a * g->n_recents + r];
}

static void colour_range(const struct sh_fig_grids *d, double *low, double *high)
{
    *low = 1;
    *high = 2;
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < d->grid[i].n_alphas * d->grid[i].n_recents; k++) {
            double v = d->grid[i].lift[k];
            *high = isfinite(v) && v > *high ? v : *high;
            *low = isfinite(v) && v < *low ? v : *low;
        }
    *low = *low < 0.1 ? 0.1 : *low;
}

static void axes(struct sh_gp *gp, const struct sh_fig_grid *g)
{
    fputs("set xtics (", gp->to);
    for (int r = 0; r < g->n_recents; r++)
        fprintf(gp->to, "%s'%d' %d", r ? ", " : "", g->recent[r], r);
    fputs(")\nset ytics ", gp->to);
    for (int a = 0; a < g->n_alphas; a++)
        sh_gp_tic_at(gp, a, g->alpha[a], 8);
    fprintf(gp->to, ")\nset xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\n", g->n_recents - 1, g->n_alphas - 1);
    int n_none = 0;
    for (int a = 0; a < g->n_alphas; a++)
        for (int r = 0; r < g->n_recents; r++)
            if (!isfinite(cell(g, a, r))) {
                double x = r, y = a;
                fprintf(gp->to, "set object %d rectangle from %.1f, %.1f to %.1f, %.1f "
                        "behind fc rgb '#dcdcdc' fs solid noborder\n"
                        "set object %d rectangle from %.1f, %.1f to %.1f, %.1f "
                        "front fc rgb '#b4b4b4' fs transparent pattern 4 noborder\n"
                        "set label %d 'none' at %d, %d center front tc rgb '#404040'\n",
                        2 * n_none + 1, x - 0.5, y - 0.5, x + 0.5, y + 0.5, 2 * n_none + 2, x - 0.5,
                        y - 0.5, x + 0.5, y + 0.5, n_none + 1, r, a);
                n_none++;
            }
}

static void grid(struct sh_gp *gp, const struct sh_fig_grid *g, int i, int has_colour_box)
{
    axes(gp, g);
    fprintf(                            /* letters of no grey: the report's page changes those in the dark */
        gp->to,
        "%s colorbox\n"
        "plot $lift%d matrix using ($3 == $3 ? $1 : NaN):2:($1-0.5):($1+0.5):($2-0.5):($2+0.5)"
        ":(at_least($3)) "
        "with boxxyerror fs solid noborder lc palette, \\\n"
        "    '' matrix using 1:2:(is_dark($3) ? said($3) : '') with labels tc rgb '#fffff0', \\\n"
        "    '' matrix using 1:2:(is_dark($3) ? '' : said($3)) with labels tc rgb '#0b0b17'\n"
        "unset label\nunset object\n", has_colour_box ? "set" : "unset", i);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_grids *d = data->persistence_grid;
    (void)e;
    int most_alphas = 1;
    double low, high;
    for (int i = 0; i < d->n; i++)
        most_alphas = d->grid[i].n_alphas > most_alphas ? d->grid[i].n_alphas : most_alphas;
    struct sh_gp_grid g = {.wide = d->n > 1 ? 3.1 : 4.2, .tall = 0.42 * most_alphas + 0.4, .least = 0.2 * most_alphas,
                           .left = 0.5, .right = 0.75, .below = 0.3, .last = 0.2, .first = 0.2,
                           .most = 3};
    for (int i = 0; i < d->n; i++)
        sh_gp_titled(&g, d->grid[i].title, NULL);
    sh_gp_lay_out(gp, &g, d->n);
    colour_range(d, &low, &high);
    for (int i = 0; i < d->n; i++)
        sh_gp_matrix(gp, "lift", i, d->grid[i].n_alphas, d->grid[i].n_recents, d->grid[i].lift);
    fprintf(gp->to, "low = %.10g\nhigh = %.10g\n"
            "at_least(v) = v == v ? (v < low ? low : v) : NaN\n"
            "is_dark(v) = v == v ? log(at_least(v) / low) < 0.62 * log(high / low) : 0\n"
            "said(v) = v == v ? sprintf(v < 9.95 ? '%%.2f' : v < 99.5 ? '%%.1f' : '%%.0f', v) : ''\n"
            "set cbrange [low:high]\nset cblabel 'lift = ratio / chance' offset 0.8, 0\n"
            "set border 15 ls 21\nunset grid\nset tics scale 0\n", low, high);
    sh_gp_log_tics(gp, high);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->grid[g.at[i]].title, NULL);
        sh_gp_axis_label(gp, "xlabel", "R: recent tokens left out", g.wide + g.left, sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", "pivotal above", g.tall + 0.5, sh_gp_is_left(&g, i));
        grid(gp, &d->grid[g.at[i]], g.at[i], i % g.columns == g.columns - 1 || i == g.n - 1);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_grids *d = data->persistence_grid;
    fprintf(to, "the lift for each threshold and each number of recent tokens left out%s",
            d->n > 1 ? ", one grid per trace" : "");
}

const struct sh_figure sh_figure_persistence_grid = {
    .number = SH_FIG_persistence_grid, .name = "persistence-grid",
    .summary = "lift for each threshold and each number of recent tokens left out, one grid per trace", .most = 6,
    .parts = "traces", .draw = draw, .caption = caption};
