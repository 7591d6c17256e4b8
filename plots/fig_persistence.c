/* SPDX-License-Identifier: Apache-2.0 */
/* The persistence ratio of every layer with its chance level (the density of early pivotal tokens),
 * one panel per reading of "pivotal", one colour per trace. */
#include <math.h>

#include "plots/figure.h"

#define TALL 2.7                /* inches, a panel without its margins */
#define PITCH_X 5.1             /* from one to the next, where there is room */
#define MARGINS 0.9
#define PITCH_Y 4.0

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

/* The legend of all panels, in its own box. */
static void legend(struct sh_gp *gp, const struct sh_fig_panels *d, int any_missing)
{
    int any_range = 0;
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_series; i++)
            any_range |= d->panel[p].series[i].min_head && d->panel[p].series[i].max_head;
    fputs("set key center center horizontal Left reverse samplen 2.5\n"
          "unset border\nunset tics\nunset grid\nunset xlabel\nunset ylabel\nunset title\n"
          "set xrange [0:1]\nset yrange [0:1]\nplot \\\n", gp->to);
    for (int i = 0; i < d->panel[0].n_series; i++) {
        fprintf(gp->to, "    NaN with linespoints ls %d title ", i + 1);
        sh_gp_text(gp, d->panel[0].series[i].label, 28);
        fputs(", \\\n", gp->to);
    }
    if (any_range)
        fputs("    NaN with filledcurves y1=0 fc rgb '#808080' fs solid 0.3 noborder "
              "title 'range of the heads', \\\n", gp->to);
    if (any_missing)
        fputs("    NaN with points lc rgb '#606060' pt 2 ps 0.7 title 'no pivotal token left', \\\n", gp->to);
    fputs("    NaN with lines lc rgb '#606060' lw 1.3 dt (16,8) title 'chance level (density)'\n", gp->to);
}

static void panel(struct sh_gp *gp, const struct sh_fig_panels *d, int p)
{
    const struct sh_fig_panel *here = &d->panel[p];
    const char *separator = "plot ";
    int n_layers = 1;
    for (int i = 0; i < here->n_series; i++)
        n_layers = here->series[i].n_layers > n_layers ? here->series[i].n_layers : n_layers;
    sh_gp_set(gp, "title", here->title, 60);
    fprintf(gp->to, "set xtics 0, %d\nset xrange [-0.5:%d.5]\n", sh_gp_step(n_layers, 14), n_layers - 1);
    for (int i = 0; i < here->n_series; i++)
        if (here->series[i].min_head && here->series[i].max_head) {
            fprintf(gp->to, "%s$p%ds%d using 1:4:5 with filledcurves ls %d fs transparent solid 0.2 noborder",
                    separator, p, i, i + 1);
            separator = ", \\\n    ";
        }
    for (int i = 0; i < here->n_series; i++) {
        fprintf(gp->to, "%s$p%ds%d using 1:3 with lines ls %d, \\\n    '' using 1:2 with linespoints ls %d",
                separator, p, i, i + 11, i + 1);
        if (n_missing(&here->series[i]))
            fprintf(gp->to, ", \\\n    $p%dm%d using 1:(%.3f) with points ls %d pt 2 ps 0.7", p, i,
                    0.02 + 0.045 * i, i + 1);
        separator = ", \\\n    ";
    }
    fputs("\nunset label\n", gp->to);
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_panels *d = data->persistence;
    for (int p = 0; p < d->n; p++)
        if (d->panel[p].n_series < 1 || d->panel[p].n_series > SH_GP_COLOURS)
            return sh_misused(e, "figure persistence shows 1 to %d traces, found %d", SH_GP_COLOURS,
                              d->panel[p].n_series);
    int n_columns = sh_gp_columns(gp, PITCH_X, d->n < 2 ? 1 : 2);
    int n_rows = (d->n + n_columns - 1) / n_columns, any_missing = 0;
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_series; i++)
            any_missing |= n_missing(&d->panel[p].series[i]) > 0;
    double legend_in = 0.22 * ((d->panel[0].n_series + 2 + n_columns) / n_columns), top = SH_GP_TOP;
    double width = sh_gp_room(gp, 0.3 + PITCH_X * n_columns), height = top - 0.3 + PITCH_Y * n_rows + legend_in,
           pitch = (width - 0.3) / n_columns;
    sh_gp_page(gp, width, height, data->title, data->settings);
    for (int p = 0; p < d->n; p++)
        for (int i = 0; i < d->panel[p].n_series; i++)
            block(gp, &d->panel[p].series[i], p, i);
    fputs("set xlabel 'layer'\nset ylabel 'persistence ratio'\nset yrange [0:1.04]\n"
          "set ytics 0, 0.2, 1\n"
          "set multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int p = 0; p < d->n; p++) {
        sh_gp_box(gp, 0.85 + pitch * (p % n_columns), top + PITCH_Y * (p / n_columns), pitch - MARGINS, TALL);
        panel(gp, d, p);
    }
    sh_gp_box(gp, 0.3, height - legend_in - 0.08, width - 0.6, legend_in);
    legend(gp, d, any_missing);
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_panels *d = data->persistence;
    fprintf(to, "persistence ratio of every layer with its chance level%s",
            d->panel[0].n_series > 1 ? ", traces side by side" : "");
}

const struct sh_figure sh_figure_persistence = {
    .number = SH_FIG_persistence, .name = "persistence",
    .summary = "persistence ratio of every layer with its chance level, several traces side by side", .most = 4,
    .parts = "panels", .draw = draw, .caption = caption};
