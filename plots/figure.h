/* SPDX-License-Identifier: Apache-2.0 */
/* A figure: what it is called, what it shows, and how it is drawn. The data are plain arrays that the caller fills and
 * keeps; figures only read them and hold nothing afterwards. Strings may hold anything (token texts, model names). NaN
 * always means "no value". */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include "plots/figures.h"
#include "plots/gp.h"

/* SH_FIG_heatmap and so on: the numbers of the figures, in the order of figures.h. */
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
    /* Writes the whole script; -1 if the data are not what it needs. Begins with sh_gp_page. */
    int (*draw)(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e);
    /* What is drawn of these data, as a phrase; NULL: the summary says it of any. */
    void (*caption)(FILE *to, const struct sh_fig_data *d);
};

/* The figures in the order of figures.h; a NULL ends them. */
extern const struct sh_figure *const sh_figures[];

/* By name. NULL for an unknown one: SH_MISUSED, with the names of those that shears plot draws. */
const struct sh_figure *sh_figure_find(const char *name, struct sh_err *e);

/* What a reader finds in the figure of these data, and no more; for free(). */
char *sh_figure_caption(const struct sh_figure *f, const struct sh_fig_data *d);

/* Open, draw, close: see sh_gp_open for the path, `script`, and the sizes. */
int sh_figure_plot(const struct sh_figure *f, const struct sh_fig_data *d, const char *path,
                   int script, double width_in, double height_in, struct sh_err *e);

/* The same as a text of SVG, for free(); see svg.h for putting it into a page. */
int sh_figure_svg(const struct sh_figure *f, const struct sh_fig_data *d, double width_in, char **svg,
                  struct sh_err *e);

#endif
