/* SPDX-License-Identifier: Apache-2.0 */
/* A figure: what it is called, what it shows, what it needs, and how it is drawn. The data are
 * plain arrays that the caller fills and keeps; figures only read them and hold nothing afterwards.
 * Strings may hold anything (token texts, model names). NaN always means "there is no value". */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include "plots/chart.h"
#include "plots/gp.h"
#include "plots/measured.h"

/* heatmap: the scores of one head in cells (score_map.h makes them). */
struct sh_fig_map {
    const char *title;              /* "layer 12, head 3"                                        */
    int n_rows, n_cols;             /* positions: queries, keys                                  */
    int by_row, by_col;             /* of them in a cell                                         */
    int most_keys;                  /* that a row sees                                           */
    const float *score;             /* [cells down, cells across]: the largest of the cell's, 0..1; NaN: masked */
    const float *above;             /* likewise 1: one of them is above its row's average; 0; NaN */
    const float *single;            /* [of the figure's marks those below n_rows, cells across]: their rows alone */
    const char *const *row_label;   /* [n_rows] token texts or NULL; shown when n_rows <= 48     */
    const char *const *col_label;   /* [n_cols] likewise                                         */
};

/* persistence: one trace's values per layer. */
struct sh_fig_series {
    const char *label;              /* the trace: "OPT-6.7B", "random twin"                      */
    int n_layers;
    const double *ratio, *density;  /* [n_layers] 0..1; NaN: no pivotal token was left           */
    const double *min_head, *max_head;  /* [n_layers] range over the heads, or both NULL         */
};

struct sh_fig_panel {
    const char *title;              /* "all pivotal tokens (R = 0, K = 1)"                       */
    int n_series;                   /* at most SH_GP_COLOURS, same order and labels in each panel */
    const struct sh_fig_series *series;
};

/* persistence-grid: lift of one trace over what counts as pivotal. */
struct sh_fig_grid {
    const char *title;              /* the trace                                                 */
    int n_alphas, n_recents;
    const char *const *alpha;       /* [n_alphas] thresholds as they are written: "1/n", "5/n"   */
    const int *recent;              /* [n_recents] R: tokens left out on the near side           */
    const double *lift;             /* [n_alphas, n_recents], NaN: no pivotal token was left     */
};

/* heads: one trace, every head. */
struct sh_fig_heads {
    const char *title;              /* the trace                                                 */
    int n_layers, n_heads;
    const double *ratio;            /* [n_layers, n_heads] 0..1, NaN as above                    */
    const double *lift;             /* [n_layers, n_heads] beyond recency, NaN as above, or NULL */
};

/* budget-curve, leaderboard: one policy. */
struct sh_fig_curve {
    const char *label;              /* the policy: "h2o", "h2o:recent=5"                         */
    int is_bound;                   /* 1: sees the future (oracles); drawn apart from the others */
    int is_over;                    /* 1: keeps more than its budget, and cannot be compared     */
    int n;
    const double *share;            /* [n] ascending: budget as a share of the sequence, 0..1    */
    const double *mass, *low, *high;    /* [n] kept mass 0..1 and its 95 % interval, or NaN      */
    const double *no_sink;          /* [n] kept mass without sinks and the token itself, or NaN  */
    const double *pivotal;          /* [n] pivotal tokens that are kept, 0..1, or NaN            */
    const double *error;            /* [n] relative error of the output, >= 0, or NaN            */
    double height;                  /* mean of mass over the shares; NaN: not comparable         */
};

struct sh_fig_curves {
    const char *title;              /* the trace                                                 */
    const char *note;               /* what the heights are over: "shares 0.1 to 1"              */
    int n_curves;                   /* best height first; bounds anywhere                        */
    const struct sh_fig_curve *curve;
};

/* dropped-mass: one trace over the share of each row's scores that is kept. NaN: not defined. */
struct sh_fig_dropped {
    const char *title;              /* the trace                                                 */
    int n;
    const double *share;            /* [n] ascending, 0..1                                       */
    const double *measured;         /* [n] mass of what is dropped, 0..1: mean over layers       */
    const double *least, *most;     /* [n] range of it over the layers                           */
    const double *law, *law_cut;    /* [n] D(rho), and D cut at the largest possible score       */
    const double *printed;          /* [n] Theorem 4.1 where it says something, in units of |v|  */
    const double *error;            /* [n] measured error of the output in units of max |v|      */
};

/* allocation: the budget of every head. */
struct sh_fig_plan {
    const char *title;              /* "h2o, budget 0.2, allocator adakv"                        */
    int n_layers, n_heads;
    const double *tokens;           /* [n_layers, n_heads] of a KV head, NaN: not planned        */
};

/* Everything a figure may draw; a figure reads the parts that its `needs` name. */
struct sh_fig_data {
    const char *title;              /* heading: the model, the text                              */
    const char *settings;           /* second line: "alpha 1/n, split 0.5, 12 sequences"; or NULL */
    int n_maps, n_panels, n_grids, n_heads;
    const struct sh_fig_map *maps;  /* 1 to 5 */
    const int *marks;               /* [n_marks] query positions whose rows are shown one by one */
    int n_marks;                    /* 0 to 8; those outside a map are left out there            */
    const struct sh_fig_panel *panels;  /* 1 to 4 */
    const struct sh_fig_grid *grids; /* 1 to 6 */
    const struct sh_fig_heads *heads;   /* 1 to 4 */
    int n_curves, n_dropped, n_plans;
    const struct sh_fig_curves *curves; /* 1 to 4 */
    const struct sh_fig_dropped *dropped;   /* 1 to 4 */
    const struct sh_fig_plan *plans;    /* 1 to 4 */
    int n_charts, n_stacks;
    const struct sh_fig_chart *charts;  /* 1 to 4 */
    const struct sh_fig_stacks *stacks; /* 1 */
    int n_measured;
    const struct sh_fig_measured *measured; /* 1 to SH_MEASURED_PANELS                           */
    const char *ratio_settings, *lift_settings; /* for `heads`: "R = 0, alpha 1/n"; or NULL      */
};

enum sh_fig_needs {
    SH_FIG_MAPS = 1, SH_FIG_PANELS = 2, SH_FIG_GRIDS = 4, SH_FIG_HEADS = 8, SH_FIG_CURVES = 16,
    SH_FIG_DROPPED = 32, SH_FIG_PLANS = 64, SH_FIG_CHARTS = 128, SH_FIG_STACKS = 256,
    SH_FIG_COMPRESSION = 512, SH_FIG_QUANT = 1024, SH_FIG_DRIFT = 2048, SH_FIG_CHANGES = 4096,
    SH_FIG_MEASURED = SH_FIG_COMPRESSION | SH_FIG_QUANT | SH_FIG_DRIFT | SH_FIG_CHANGES
};

struct sh_figure {
    const char *name, *summary;
    int needs;                      /* of sh_fig_needs */
/* Writes the whole script; -1 if the data are not what it needs. Begins with sh_gp_page. */
    int (*draw)(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e);
    /* What is drawn of these data, as a phrase; NULL: the summary says it of any. */
    void (*caption)(FILE *to, const struct sh_fig_data *d);
};

/* The figures in the order of figures.h; a NULL ends them. */
extern const struct sh_figure *const sh_figures[];

/* By name; an unknown one is misuse, told with those that stores and plans give. NULL then. */
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
