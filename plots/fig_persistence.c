/* SPDX-License-Identifier: Apache-2.0 */
/* The persistence ratio of every layer with its chance level (the density of early pivotal tokens),
 * one panel per reading of "pivotal", one colour per trace. */
#include <math.h>

#include "plots/figure.h"

static int n_missing(const struct sh_fig_series *s)
{
    int n = 0;
    for (int i = 0; i < s->n_layers; i++)
        n += !isfinite(s->ratio[i]);
    return n;
}

static void block(struct sh_gp *gp, const struct sh_fig_series *s, int panel, int series)
{
    fprintf(gp->to, "$p%ds%d << EOD\n# ", panel, series);
    sh_gp_text(gp, s->label, 200);
    fputs("\n# layer ratio density min_head max_head\n", gp->to);
    for (int i = 0; i < s->n_layers; i++)
        sh_gp_row(gp, (double[]){i, s->ratio[i], s->density[i], s->min_head ? s->min_head[i] : (double)NAN,
                                 s->max_head ? s->max_head[i] : (double)NAN}, 5);
    fputs("EOD\n", gp->to);
    if (n_missing(s) == 0)
        return;
    fprintf(gp->to, "$p%dm%d << EOD\n# layers without a ratio\n", panel, series);
    for (int i = 0; i < s->n_layers; i++)
        if (!isfinite(s->ratio[i]))
            fprintf(gp->to, "%d\n", i);
    fputs("EOD\n", gp->to);
}

static void legend(struct sh_gp_grid *g, const struct sh_fig_panels *d)
{
    int any_missing = 0, any_range = 0;
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_series; i++) {
            const struct sh_fig_series *s = &d->panel[p].series[i];
            any_missing |= n_missing(s) > 0;
            any_range |= s->min_head && s->max_head;
            sh_gp_entry(g, s->label, SH_GP_LINE, " ls %d", i + 1);
        }
    sh_gp_entry(g, "chance level (density)", SH_GP_LINE, " lc rgb '#606060' lw 1.5 dt (16,8)");
    if (any_range)
        sh_gp_entry(g, "range of the heads", SH_GP_BAND, " fc rgb '#a0a0a0' fs solid 0.6 noborder");
    if (any_missing)
        sh_gp_entry(g, "none: no pivotal token left", SH_GP_MARK, " lc rgb '#606060' pt 2 ps 0.6");
}

/* From the tenth below the least value: a panel is never empty below its lines. */
static double least(const struct sh_fig_panel *p)
{
    double low = 0.9;
    for (int i = 0; i < p->n_series; i++)
        for (int l = 0; l < p->series[i].n_layers; l++) {
            const struct sh_fig_series *s = &p->series[i];
            low = fmin(low, fmin(s->ratio[l], isfinite(s->ratio[l]) ? s->density[l] : (double)NAN));
            low = s->min_head ? fmin(low, s->min_head[l]) : low;
        }
    return floor(10 * low + 1e-9) / 10;
}

static int any_missing(const struct sh_fig_panel *p)
{
    int n = 0;
    for (int i = 0; i < p->n_series; i++)
        n += n_missing(&p->series[i]);
    return n > 0;
}

/* Layers without a ratio are marks in a row of their own below the axis, side by side: they have no height. */
static void panel(struct sh_gp *gp, const struct sh_fig_panels *d, int p, double wide, double tall)
{
    const struct sh_fig_panel *here = &d->panel[p];
    const char *separator = "plot ";
    int n_layers = 1;
    double low = least(here);
    for (int i = 0; i < here->n_series; i++)
        n_layers = here->series[i].n_layers > n_layers ? here->series[i].n_layers : n_layers;
    double none = low - fmax(0.07, 0.2 / tall) * (1 - low);
    fprintf(gp->to, "set xtics 0, %d\nset xrange [-0.5:%d.5]\nset yrange [%.4g:%.4g]\n",
            sh_gp_step(n_layers, 1 + (int)(3.4 * wide)), n_layers - 1,
            any_missing(here) ? none - 0.6 * (low - none) : low, 1 + 0.03 * (1 - low));
    sh_gp_tics(gp, 'y', low, 1, tall);
    if (any_missing(here)) {
        double step = sh_gp_tic_step(low, 1, sh_gp_y_tics(tall));
        fprintf(gp->to, "set ytics %g, %g, 1\nset ytics add ('none' %.4g)\n"
                "set arrow from graph 0, first %g to graph 1, first %g nohead ls 21\n", low, step, none, low, low);
    }
    for (int i = 0; i < here->n_series; i++)
        if (here->series[i].min_head && here->series[i].max_head) {
            fprintf(gp->to, "%s$p%ds%d using 1:4:5 with filledcurves ls %d fs transparent solid 0.3 noborder",
                    separator, p, i, i + 1);
            separator = ", \\\n    ";
        }
    for (int i = 0; i < here->n_series; i++) {
        fprintf(gp->to, "%s$p%ds%d using 1:($2 == $2 ? $3 : NaN) with lines ls %d, \\\n"
                "    '' using 1:2 with linespoints ls %d",
                separator, p, i, i + 11, i + 1);
        if (n_missing(&here->series[i]))
            fprintf(gp->to, ", \\\n    $p%dm%d using ($1 + %.2f):(%.4g) with points ls %d pt 2 ps 0.6", p, i,
                    here->n_series < 2 ? 0.0 : 0.5 * i / here->n_series - 0.25, none, i + 1);
        separator = ", \\\n    ";
    }
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_panels *d = data->persistence;
    struct sh_gp_grid g = {.wide = 4.2, .tall = 2.7, .least = 0.6, .left = 0.45, .right = 0.12,
                           .below = 0.3, .last = 0.2, .first = 0.25, .most = 2};
    for (int p = 0; p < d->n; p++)
        if (d->panel[p].n_series < 1 || d->panel[p].n_series > SH_GP_COLOURS)
            return sh_misused(e, "figure persistence shows 1 to %d traces, found %d", SH_GP_COLOURS,
                              d->panel[p].n_series);
    legend(&g, d);
    for (int p = 0; p < d->n; p++)
        sh_gp_titled(&g, d->panel[p].title, NULL);
    sh_gp_lay_out(gp, &g, d->n);
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_series; i++)
            block(gp, &d->panel[p].series[i], p, i);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->panel[g.at[i]].title, NULL);
        sh_gp_axis_label(gp, "xlabel", "layer", g.wide, sh_gp_is_last(&g, i));
        sh_gp_axis_label(gp, "ylabel", "persistence ratio", g.tall + 0.5, sh_gp_is_left(&g, i));
        panel(gp, d, g.at[i], g.wide, g.tall);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_panels *d = data->persistence;
    fprintf(to, "the persistence ratio of every layer with its chance level%s",
            d->panel[0].n_series > 1 ? ", traces side by side" : "");
}

const struct sh_figure sh_figure_persistence = {
    .number = SH_FIG_persistence, .name = "persistence",
    .summary = "persistence ratio of every layer with its chance level, several traces side by side", .most = 4,
    .parts = "panels", .draw = draw, .caption = caption};
