/* SPDX-License-Identifier: Apache-2.0 */
/* A figure: what it is called, what it shows, and how it is drawn. Figures only read their data and hold nothing
 * afterwards. */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include "plots/fig_data.h"
#include "plots/gp.h"

/* The figures, one line each: X(name, data) stands for sh_figure_<name>, of fig_<name>.c, fig_charts.c or
 * fig_measured.c, and for the data it draws, struct sh_fig_<data> of fig_data.h. */
#define SH_FIGURES(X) \
    X(heatmap, maps) \
    X(persistence, panels) \
    X(persistence_grid, grids) \
    X(heads, head_maps) \
    X(budget_curve, curve_sets) \
    X(leaderboard, curve_sets) \
    X(dropped_mass, drops) \
    X(allocation, plans) \
    X(capacity, stacks) \
    X(frontier, charts) \
    X(latency, charts) \
    X(occupancy, charts) \
    X(compression, measured_panels) \
    X(quant, measured_panels) \
    X(drift, measured_panels) \
    X(score_change, measured_panels)

/* SH_FIG_heatmap and so on: the numbers of the figures, in this order. */
#define SH_FIG_NUMBER(name, data) SH_FIG_##name,
enum sh_fig_number { SH_FIGURES(SH_FIG_NUMBER) SH_FIG_COUNT };

/* Sets of figures have one bit each. */
#define SH_FIG_BIT(name) (1u << SH_FIG_##name)

/* What figures draw: d->heatmap is a const struct sh_fig_maps *, and so on. A figure reads its own data alone; NULL:
 * they are not there. Each of these structs begins with `int n`, how many of its parts there are. */
#define SH_FIG_MEMBER(name, data) const struct sh_fig_##data *name;
struct sh_fig_data {
    const char *title;              /* heading: the model, the text                              */
    const char *settings;           /* second line: "alpha 1/n, split 0.5, 12 sequences"; or NULL */
    SH_FIGURES(SH_FIG_MEMBER)
};

struct sh_figure {
    enum sh_fig_number number;
    const char *name, *summary;
    int most;                       /* parts that it shows side by side: 1 to this                */
    const char *parts;              /* what they are: "traces"                                    */
    const char *drawn_by;           /* "capacity --plot-memory FILE"; NULL: shears plot, from stores or plans */
    /* Writes the whole script; -1 if the data are not what it needs. Begins with sh_gp_page or sh_gp_lay_out. */
    int (*draw)(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e);
    /* What is drawn of these data, as a phrase; NULL: the summary says it of any. */
    void (*caption)(FILE *to, const struct sh_fig_data *d);
};

#define SH_FIG_DECLARE(name, data) extern const struct sh_figure sh_figure_##name;
SH_FIGURES(SH_FIG_DECLARE)

/* The figures in their order; a NULL ends them. */
extern const struct sh_figure *const sh_figures[];

/* By name. NULL for an unknown one: SH_MISUSED, with the names of those that shears plot draws. */
const struct sh_figure *sh_figure_find(const char *name, struct sh_err *e);

/* What a reader finds in the figure of these data, and no more; for free(). */
char *sh_figure_caption(const struct sh_figure *f, const struct sh_fig_data *d);

/* Open, draw, close: see sh_gp_open for the path, `script`, and the look. A look that the figure cannot have (a height
 * without room for its panels) is SH_MISUSED. */
int sh_figure_plot(const struct sh_figure *f, const struct sh_fig_data *d, const char *path, int script,
                   const struct sh_gp_look *look, struct sh_err *e);

/* The same as a text of SVG, for free(). */
int sh_figure_svg(const struct sh_figure *f, const struct sh_fig_data *d, const struct sh_gp_look *look, char **svg,
                  struct sh_err *e);

/* Writes such a text as an element of a page, without gnuplot's prologue and background. `name` [a-z0-9-] goes before
 * every id, so that several figures can be in one page; `label` is the description for readers who cannot see it. Greys
 * become var(--gV, the grey itself), the colours of lines var(--cRRGGBB, itself): a dark page sets them. */
void sh_svg_inline(FILE *to, const char *svg, const char *name, const char *label, const char *class_name);

#endif
