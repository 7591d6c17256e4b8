/* SPDX-License-Identifier: Apache-2.0 */
/* Every head of a model: the persistence ratio, and next to it the lift beyond recency. One row of
 * maps per trace; all maps of one kind share their colour scale, so traces can be compared. */
#include <math.h>
#include <stdio.h>

#include "plots/figure.h"

#define SCALE 0.3               /* inches of a scale below the maps */
#define WIDE_RIGHT 0.95         /* or right of each of them */

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

/* The scale right of each map, or, where the page is narrow, once below the maps of its kind, with fewer numbers. */
static void scale(struct sh_gp *gp, const struct sh_gp_grid *g, int i, int is_lift, struct scale s, int is_narrow)
{
    if (is_lift)
        sh_gp_log_tics(gp, s.high);
    else
        fputs("unset logscale cb\nset cbtics auto\n", gp->to);
    if (!is_narrow)
        return;
    if (!sh_gp_is_last(g, i)) {
        fputs("unset colorbox\n", gp->to);
        return;
    }
    if (!is_lift)
        fprintf(gp->to, "set cbtics (%g, %g, %g)\n", s.low, (s.low + s.high) / 2, s.high);
    else if (s.high > 10)
        fputs("set cbtics (0.1, 1, 10, 100)\n", gp->to);
    else
        fputs("set cbtics (0.1, 1, 2, 5, 10)\n", gp->to);
    sh_gp_scale_below(gp, g, i, g->tall + g->below + g->last - SCALE, g->wide);
}

static int is_empty(const double *value, int n)
{
    for (int i = 0; i < n; i++)
        if (isfinite(value[i]))
            return 0;
    return 1;
}

static void map(struct sh_gp *gp, const struct sh_fig_heads *h, int i, int is_lift, struct scale s,
                const struct sh_gp_grid *g)
{
    if (is_empty(is_lift ? h->lift : h->ratio, h->n_layers * h->n_heads))
        fprintf(gp->to, "set label 1 '%s' at graph 0.5, graph 0.5 center front\n",
                g->wide < 2 ? "none" : "no pivotal token was left");
    fprintf(gp->to, "set cblabel '%s' offset 0.8, 0\nset xtics 0, %d\nset ytics 0, %d\n"
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\n"
            "low = %.10g\nset cbrange [low:%.10g]\n"
            "plot $%s%d matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):($1+0.5)"
            ":(at_least($3, low)) with boxxyerror fs solid noborder lc palette\nunset label\nunset arrow\n",
            g->tall < 1.5 || g->right < WIDE_RIGHT ? "" : is_lift ? "lift = ratio / chance" : "persistence ratio",
            sh_gp_step(h->n_layers, 1 + (int)(3.4 * g->wide)), sh_gp_step(h->n_heads, 1 + (int)(4 * g->tall)),
            h->n_layers - 1, h->n_heads - 1, s.low, s.high, is_lift ? "lift" : "ratio", i);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_head_maps *d = data->heads;
    (void)e;
    int n_kinds = 1, is_narrow = sh_gp_room(gp, 9) < SH_GP_NARROW;
    for (int i = 0; i < d->n; i++)
        n_kinds = d->trace[i].lift ? 2 : n_kinds;
    struct sh_gp_grid g = {.wide = 3.2, .tall = 2.4, .least = 0.6, .left = 0.35,
                           .right = is_narrow ? 0.15 : WIDE_RIGHT, .below = 0.3,
                           .last = 0.2 + (is_narrow ? SCALE + 0.1 : 0), .first = 0.2, .most = n_kinds};
    if (has_none(d))
        sh_gp_entry(&g, "no pivotal token was left", SH_GP_BAND, " fc rgb '#c8c8c8' fs solid noborder");
    char what[2][120];
    for (int k = 0; k < 2; k++) {
        const char *settings = k ? d->lift_settings : d->ratio_settings;
        snprintf(what[k], sizeof what[k], "%s%s%.80s", k ? "lift" : "ratio", settings ? ", " : "",
                 settings ? settings : "");
    }
    for (int i = 0; i < 2 * d->n; i++)
        sh_gp_titled(&g, d->n > 1 ? d->trace[i / 2].title : what[i % 2], d->n > 1 ? what[i % 2] : NULL);
    sh_gp_lay_out(gp, &g, d->n * n_kinds);
    for (int i = 0; i < d->n; i++) {
        const struct sh_fig_heads *h = &d->trace[i];
        sh_gp_matrix(gp, "ratio", i, h->n_layers, h->n_heads, h->ratio);
        if (h->lift)
            sh_gp_matrix(gp, "lift", i, h->n_layers, h->n_heads, h->lift);
    }
    fputs("at_least(v, low) = v == v ? (v < low ? low : v) : NaN\n"
          "set border 15 ls 21\nunset grid\n"
          "set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 "
          "behind fc rgb '#c8c8c8' fs solid noborder\n", gp->to);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        int trace = g.at[i] / n_kinds, is_lift = g.at[i] % n_kinds;
        const struct sh_fig_heads *h = &d->trace[trace];
        if (is_lift && !h->lift)
            continue;
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->n > 1 ? h->title : what[is_lift], d->n > 1 ? what[is_lift] : NULL);
        sh_gp_axis_label(gp, "xlabel", "layer", g.wide, sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", "head", g.tall, sh_gp_is_left(&g, i));
        scale(gp, &g, i, is_lift, is_lift ? lift_scale(d) : ratio_scale(d), is_narrow);
        map(gp, h, trace, is_lift, is_lift ? lift_scale(d) : ratio_scale(d), &g);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

const struct sh_figure sh_figure_heads = {
    .number = SH_FIG_heads, .name = "heads",
    .summary = "the persistence ratio and the lift beyond recency of every head, as a grid of layers and heads",
    .most = 4, .parts = "traces", .draw = draw};
