/* SPDX-License-Identifier: Apache-2.0 */
/* Every head of a model: the persistence ratio, and next to it the lift beyond recency. One row of
 * maps per trace; all maps of one kind share their colour scale, so traces can be compared. */
#include <math.h>

#include "plots/figure.h"

#define TALL 2.4                /* inches, a map without its margins */
#define PITCH 3.6               /* from one row of maps to the next */
#define PITCH_X 4.8             /* from one column, where there is room */
#define MARGINS 1.6

struct scale { double low, high; };

static struct scale range(const double *value, int n, struct scale s)
{
    for (int i = 0; value && i < n; i++) {
        s.low = isfinite(value[i]) && value[i] < s.low ? value[i] : s.low;
        s.high = isfinite(value[i]) && value[i] > s.high ? value[i] : s.high;
    }
    return s;
}

/* Ratio: 0.5 … 1, or from the tenth below the smallest. Lift: from 1, or the smallest, upwards. */
static struct scale ratio_scale(const struct sh_fig_head_maps *d)
{
    struct scale s = {0.5, 1};
    for (int i = 0; i < d->n; i++)
        s = range(d->trace[i].ratio, d->trace[i].n_layers * d->trace[i].n_heads, s);
    s.low = floor(10 * s.low + 1e-9) / 10;
    return s;
}

static struct scale lift_scale(const struct sh_fig_head_maps *d)
{
    struct scale s = {1, 2};
    for (int i = 0; i < d->n; i++)
        s = range(d->trace[i].lift, d->trace[i].n_layers * d->trace[i].n_heads, s);
    s.low = s.low < 0.1 ? 0.1 : s.low;
    return s;
}

static int has_none(const struct sh_fig_head_maps *d)
{
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < d->trace[i].n_layers * d->trace[i].n_heads; k++)
            if (!isfinite(d->trace[i].ratio[k]) || (d->trace[i].lift && !isfinite(d->trace[i].lift[k])))
                return 1;
    return 0;
}

static void map(struct sh_gp *gp, const struct sh_fig_heads *h, int i, int is_lift, struct scale s,
                const char *settings)
{
    fputs("set title ", gp->to);
    sh_gp_text(gp, h->title, settings ? 24 : 48);
    fputs(settings ? ".': '." : "", gp->to);
    if (settings)
        sh_gp_text(gp, settings, 28);
    fprintf(gp->to, "\nset cblabel '%s' offset 0.8, 0\nset xtics 0, %d\nset ytics 0, %d\n"
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\n"
            "low = %.10g\nset cbrange [low:%.10g]\n"
            "plot $%s%d matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):($1+0.5)"
            ":(at_least($3, low)) with boxxyerror fs solid noborder lc palette\nunset label\n",
            is_lift ? "lift = ratio / chance" : "persistence ratio", sh_gp_step(h->n_layers, 12),
            sh_gp_step(h->n_heads, 10), h->n_layers - 1, h->n_heads - 1, s.low, s.high, is_lift ? "lift" : "ratio", i);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_head_maps *d = data->heads;
    (void)e;
    int n_kinds = 1;
    for (int i = 0; i < d->n; i++)
        n_kinds = d->trace[i].lift ? 2 : n_kinds;
    int n_columns = sh_gp_columns(gp, PITCH_X, n_kinds), n_rows = d->n * (n_kinds / n_columns);
    double height = 0.75 + PITCH * n_rows + (has_none(d) ? 0.25 : 0);
    double width = sh_gp_room(gp, 0.4 + PITCH_X * n_columns), pitch = (width - 0.4) / n_columns;
    sh_gp_page(gp, width, height, data->title, data->settings);
    for (int i = 0; i < d->n; i++) {
        const struct sh_fig_heads *h = &d->trace[i];
        sh_gp_matrix(gp, "ratio", i, h->n_layers, h->n_heads, h->ratio);
        if (h->lift)
            sh_gp_matrix(gp, "lift", i, h->n_layers, h->n_heads, h->lift);
    }
    fputs("at_least(v, low) = v == v ? (v < low ? low : v) : NaN\n"
          "set border 15 ls 21\nunset grid\nset xlabel 'layer'\nset ylabel 'head'\n"
          "set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 "
          "behind fc rgb '#c8c8c8' fs solid noborder\n"
          "set multiplot\n", gp->to);
    sh_gp_heading(gp);
    if (has_none(d)) {
        fputs("set label 903 'grey: no pivotal token was left' at ", gp->to);
        sh_gp_at(gp, 0.75, height - 0.12);
        fputs(" left tc rgb '#606060'\n", gp->to);
    }
    for (int i = 0; i < d->n; i++) {
        int at = i * n_kinds;
        sh_gp_box(gp, 0.75, SH_GP_TOP + PITCH * (at / n_columns), pitch - MARGINS, TALL);
        fputs("unset logscale cb\nset cbtics auto\n", gp->to);
        map(gp, &d->trace[i], i, 0, ratio_scale(d), d->ratio_settings);
        at++;
        sh_gp_box(gp, 0.75 + pitch * (at % n_columns), SH_GP_TOP + PITCH * (at / n_columns), pitch - MARGINS, TALL);
        sh_gp_log_tics(gp, lift_scale(d).high);
        if (d->trace[i].lift)
            map(gp, &d->trace[i], i, 1, lift_scale(d), d->lift_settings);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

const struct sh_figure sh_figure_heads = {
    .number = SH_FIG_heads, .name = "heads",
    .summary = "persistence ratio and lift beyond recency of every head, layer by head", .most = 4, .parts = "traces",
    .draw = draw};
