/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of every KV head, layer by head, one map per plan, and next to it the budget of each layer. All
 * maps share their colour scale, so plans can be compared. */
#include <math.h>

#include "plots/figure.h"

#define TALL 2.7                /* inches, a map without its margins */
#define PITCH 3.9
#define LEFT 0.95
#define RIGHT 0.3
#define COLOURS 0.9             /* right of a map: its colour box with tics */

static double most(const struct sh_fig_plans *d)
{
    double high = 1;
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < d->plan[i].n_layers * d->plan[i].n_heads; k++)
            high = d->plan[i].tokens[k] > high ? d->plan[i].tokens[k] : high;
    return high;
}

/* layer, mean, least, most of its heads */
static void layers(struct sh_gp *gp, const struct sh_fig_plan *p, int i_plan)
{
    fprintf(gp->to, "$layers%d << EOD\n# layer mean least most\n", i_plan);
    for (int l = 0; l < p->n_layers; l++) {
        double sum = 0, least = (double)NAN, largest = (double)NAN;
        int n = 0;
        for (int h = 0; h < p->n_heads; h++) {
            double t = p->tokens[l * p->n_heads + h];
            sum += isfinite(t) ? t : 0;
            n += isfinite(t);
            least = fmin(least, t);
            largest = fmax(largest, t);
        }
        sh_gp_row(gp, (double[]){l, n ? sum / n : (double)NAN, least, largest}, 4);
    }
    fputs("EOD\n", gp->to);
}

static void map(struct sh_gp *gp, const struct sh_fig_plan *p, int i, double high)
{
    sh_gp_set(gp, "title", p->title, 58);
    fprintf(gp->to, "set ylabel 'KV head'\nset xtics 0, %d\nset ytics 0, %d\n"
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\nset cbrange [0:%.10g]\n"
            "set border 15 ls 21\nunset grid\n"
            "plot $plan%d matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):"
            "($1+0.5):3 with boxxyerror fs solid noborder lc palette\nunset label\n",
            sh_gp_step(p->n_layers, 12), sh_gp_step(p->n_heads, 10), p->n_layers - 1, p->n_heads - 1, high, i);
}

static void profile(struct sh_gp *gp, const struct sh_fig_plan *p, int i, double high)
{
    fprintf(gp->to, "set title 'by layer: mean and range over heads'\nset ylabel 'tokens per head'\n"
            "set xrange [-0.5:%d.5]\nset yrange [0:%.10g]\nset ytics auto\nset border 3 ls 21\n"
            "set grid ls 20\n"
            "plot $layers%d using 1:3:4 with filledcurves ls 1 fs transparent solid 0.2 noborder, "
            "\\\n    '' using 1:2 with linespoints ls 1\n", p->n_layers - 1, 1.05 * high, i);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_plans *d = data->allocation;
    for (int i = 0; i < d->n; i++)
        if (d->plan[i].n_layers < 1 || d->plan[i].n_heads < 1)
            return sh_misused(e, "figure allocation shows plans of at least one layer and head");
    double high = most(d);
    int n_columns = sh_gp_columns(gp, 6, 2), n_rows = d->n * (2 / n_columns);
    double top = SH_GP_TOP, page = sh_gp_room(gp, n_columns < 2 ? 6.6 : 12), half = page / n_columns,
           wide = half - LEFT - RIGHT - COLOURS;
    sh_gp_page(gp, page, top - 0.35 + PITCH * n_rows, data->title, data->settings);
    for (int i = 0; i < d->n; i++) {
        sh_gp_matrix(gp, "plan", i, d->plan[i].n_layers, d->plan[i].n_heads, d->plan[i].tokens);
        layers(gp, &d->plan[i], i);
    }
    fputs("set xlabel 'layer'\nset cblabel 'tokens' offset 0.8, 0\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int i = 0; i < d->n; i++) {
        int at = 2 * i;
        sh_gp_box(gp, LEFT, top + PITCH * (at / n_columns), wide, TALL);
        map(gp, &d->plan[i], i, high);
        at++;
        sh_gp_box(gp, LEFT + half * (at % n_columns), top + PITCH * (at / n_columns), wide + (n_columns - 1) * COLOURS,
                  TALL);
        profile(gp, &d->plan[i], i, high);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_plans *d = data->allocation;
    fprintf(to, "the budgets of %s, layer by head and over the layers", d->n > 1 ? "the plans" : "a plan");
}

const struct sh_figure sh_figure_allocation = {
    .number = SH_FIG_allocation, .name = "allocation", .summary = "the budgets of a plan, layer by head", .most = 4,
    .parts = "plans", .draw = draw, .caption = caption};
