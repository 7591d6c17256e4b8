/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of every KV head, layer by head, one map per plan, and next to it the budget of each layer. All
 * maps share their colour scale, so plans can be compared. */
#include <math.h>

#include "plots/figure.h"

#define SCALE 0.3               /* inches of a scale below the maps */

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
    fprintf(gp->to, "set yrange [-0.5:%d.5]\nset cbrange [0:%.10g]\nset border 15 ls 21\nunset grid\n"
            "plot $plan%d matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):"
            "($1+0.5):3 with boxxyerror fs solid noborder lc palette\nunset label\n", p->n_heads - 1, high, i);
}

/* Below the lowest map, with its ends as numbers, where there is no room right of each. */
static void scale(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double high)
{
    if (!sh_gp_is_last(g, i)) {
        fputs("unset colorbox\n", gp->to);
        return;
    }
    fprintf(gp->to, "set cbtics (0, %.3g, %.3g)\n", high / 2, high);
    sh_gp_scale_below(gp, g, i, g->tall + g->below + g->last - SCALE, g->wide);
}

static void profile(struct sh_gp *gp, int i, double high, double tall)
{
    sh_gp_tics(gp, 'y', 0, high, tall);
    fprintf(gp->to, "set yrange [0:%.10g]\nset border 3 ls 21\nset grid ls 20\n"
            "plot $layers%d using 1:3:4 with filledcurves ls 1 fs transparent solid 0.3 noborder, "
            "\\\n    '' using 1:2 with linespoints ls 1\nunset label\n", 1.05 * high, i);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_plans *d = data->allocation;
    for (int i = 0; i < d->n; i++)
        if (d->plan[i].n_layers < 1 || d->plan[i].n_heads < 1)
            return sh_misused(e, "figure allocation shows plans of at least one layer and head");
    double high = most(d);
    int is_narrow = sh_gp_room(gp, 9) < SH_GP_NARROW;
    struct sh_gp_grid g = {.wide = 4.1, .tall = 2.7, .least = 0.7, .left = 0.65,
                           .right = is_narrow ? 0.15 : 0.8, .below = 0.3,
                           .last = 0.2 + (is_narrow ? SCALE + 0.1 : 0), .most = 2};
    for (int i = 0; i < d->n; i++)
        sh_gp_titled(&g, d->plan[i].title, NULL);
    sh_gp_lay_out(gp, &g, 2 * d->n);
    for (int i = 0; i < d->n; i++) {
        sh_gp_matrix(gp, "plan", i, d->plan[i].n_layers, d->plan[i].n_heads, d->plan[i].tokens);
        layers(gp, &d->plan[i], i);
    }
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        const struct sh_fig_plan *p = &d->plan[g.at[i] / 2];
        int is_map = g.at[i] % 2 == 0;
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, is_map ? p->title : "by layer: mean, range of heads", NULL);
        sh_gp_axis_label(gp, "xlabel", "layer", g.wide, sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", is_map ? "KV head" : "tokens per head", g.tall + 0.4, 1);
        fprintf(gp->to, "set xrange [-0.5:%d.5]\nset xtics 0, %d\nset ytics 0, %d\n", p->n_layers - 1,
                sh_gp_step(p->n_layers, 1 + (int)(3.4 * g.wide)), sh_gp_step(p->n_heads, 1 + (int)(4 * g.tall)));
        if (is_map && is_narrow)
            scale(gp, &g, i, high);
        if (is_map)
            map(gp, p, g.at[i] / 2, high);
        else
            profile(gp, g.at[i] / 2, high, g.tall);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_plans *d = data->allocation;
    fprintf(to, "the budgets of %s: for each layer and head, and as mean and range over the heads of each layer",
            d->n > 1 ? "the plans" : "a plan");
}

const struct sh_figure sh_figure_allocation = {
    .number = SH_FIG_allocation, .name = "allocation",
    .summary = "the budgets of a plan, as a grid of layers and heads", .most = 4, .parts = "plans",
    .draw = draw, .caption = caption};
