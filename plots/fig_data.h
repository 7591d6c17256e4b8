/* SPDX-License-Identifier: Apache-2.0 */
/* What figures draw: plain arrays that the caller fills and keeps. Strings may hold anything (token texts, model
 * names). NaN always means "no value". */
#ifndef PLOTS_FIG_DATA_H
#define PLOTS_FIG_DATA_H

/* ---- heatmap: the scores of single heads in cells (score_map.h makes them) ---- */

struct sh_fig_map {
    const char *title;              /* "layer 12, head 3"                                        */
    int n_rows, n_cols;             /* positions: queries, keys                                  */
    int by_row, by_col;             /* rows and columns in a cell                                */
    int most_keys;                  /* the most keys that a row sees                             */
    const float *score;             /* [cells down, cells across]: the largest of the cell's, 0..1; NaN: masked */
    const float *above;             /* likewise 1: one of them is above its row's average; 0; NaN */
    const float *single;            /* [of the figure's marks those below n_rows, cells across]: their rows alone */
    const char *const *row_label;   /* [n_rows] token texts or NULL; shown when n_rows <= 48     */
    const char *const *col_label;   /* [n_cols] likewise                                         */
};

struct sh_fig_maps {
    int n;
    const struct sh_fig_map *map;   /* [n] */
    int n_marks;                    /* 0 to 8; those outside a map are left out there            */
    const int *marks;               /* [n_marks] query positions whose rows are shown one by one */
};

/* ---- persistence: the values of each trace, layer by layer ---- */

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

struct sh_fig_panels {
    int n;
    const struct sh_fig_panel *panel;   /* [n] */
};

/* ---- persistence-grid: the lift of each trace over what counts as pivotal ---- */

struct sh_fig_grid {
    const char *title;              /* the trace                                                 */
    int n_alphas, n_recents;
    const char *const *alpha;       /* [n_alphas] thresholds as they are written: "1/n", "5/n"   */
    const int *recent;              /* [n_recents] R: tokens left out on the near side           */
    const double *lift;             /* [n_alphas, n_recents], NaN: no pivotal token was left     */
};

struct sh_fig_grids {
    int n;
    const struct sh_fig_grid *grid; /* [n] */
};

/* ---- heads: every head of each trace ---- */

struct sh_fig_heads {
    const char *title;              /* the trace                                                 */
    int n_layers, n_heads;
    const double *ratio;            /* [n_layers, n_heads] 0..1, NaN: no pivotal token was left  */
    const double *lift;             /* [n_layers, n_heads] beyond recency, NaN likewise; or NULL */
};

struct sh_fig_head_maps {
    int n;
    const struct sh_fig_heads *trace;   /* [n] */
    const char *ratio_settings, *lift_settings; /* "R = 0, alpha 1/n"; or NULL                   */
};

/* ---- budget-curve and leaderboard: the policies of each trace over their budgets ---- */

struct sh_fig_curve {
    const char *label;              /* the policy: "h2o", "h2o:recent=5"                         */
    int is_bound;                   /* 1: sees the future (oracles); drawn apart from the others */
    int is_reference;               /* 1: what others are compared with: "window"                */
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
    const char *text;               /* what was measured on; in tables, not drawn                */
};

struct sh_fig_curve_sets {
    int n;
    const struct sh_fig_curves *set;    /* [n] */
};

/* ---- dropped-mass: each trace over the share of each row's scores that is kept ---- */

struct sh_fig_dropped {
    const char *title;              /* the trace                                                 */
    int n;
    const double *share;            /* [n] ascending, 0..1                                       */
    const double *measured;         /* [n] mass of what is dropped, 0..1: mean over layers       */
    const double *least, *most;     /* [n] range of it over the layers                           */
    const double *law, *law_cut;    /* [n] D(rho), and D cut at the largest possible score       */
    const double *printed;          /* [n] Theorem 4.1 where it says something, in units of |v|  */
    const double *error;            /* [n] measured error of the output in units of max |v|      */
    const double *asked;            /* [n] budgets as asked for; share: what they are in whole tokens, as a mean */
};

struct sh_fig_drops {
    int n;
    const struct sh_fig_dropped *trace; /* [n] */
};

/* ---- allocation: the budget of every head ---- */

struct sh_fig_plan {
    const char *title;              /* "h2o, budget 0.2, allocator adakv"                        */
    int n_layers, n_heads;
    const double *tokens;           /* [n_layers, n_heads] of a KV head, NaN: not planned        */
};

struct sh_fig_plans {
    int n;
    const struct sh_fig_plan *plan; /* [n] */
};

/* ---- capacity: bars of parts; frontier, latency and occupancy: lines over one axis ---- */

struct sh_fig_line {
    const char *label;              /* the plan: "full", "0.2"                                   */
    int n, look;                    /* colour, from 0; labels of one look share it                */
    int dash;                       /* 0 solid, 1 dashed, more: dotted                            */
    const double *x, *y;            /* [n] x ascending; NaN: no value                            */
    int is_grey;                    /* 1: one of too many, thin and below the others             */
    int is_plain;                   /* 1: the only one, which the title tells: dark, not in the legend */
};

struct sh_fig_chart {
    const char *title, *x, *y;      /* heading and axes with their units                         */
    int is_log;                     /* upwards, of values above 0; others are left out then       */
    int is_close;                   /* the axis begins near the least value, not at 0             */
    double limit;                   /* drawn across the panel where the lines come near; NaN: none */
    const char *limit_label;
    int n_lines;
    const struct sh_fig_line *lines;
    double most;                    /* the axis, not a log one, ends there if lines go beyond; 0: none */
};

enum { SH_STACK_PARTS = 7 };        /* one colour each                                           */

struct sh_fig_stack {
    const char *label;              /* the bar: "0.2, int4"                                      */
    double part[SH_STACK_PARTS];    /* GiB, from the left; NaN or 0: not there                   */
    double limit, whole;            /* GiB that may be used, and of the GPU; NaN: not known      */
    const char *remark;             /* right of it: "42 sequences"                               */
};

struct sh_fig_stacks {
    int n, n_parts;
    const char *const *part;        /* [n_parts] names                                           */
    const struct sh_fig_stack *bars;    /* [n] */
};

struct sh_fig_charts {
    int n;
    const struct sh_fig_chart *chart;   /* [n] */
};

/* ---- compression, quant, drift and score-change: panels of measured values with their errors ---- */

enum { SH_MEASURED_LINES = 42, SH_MEASURED_PANELS = 6 };

struct sh_fig_measured_line {
    const char *label;              /* "h2o:recent=25", "layer 3"                                */
    int n;
    const double *x, *y;            /* [n] x ascending; NaN: no value                            */
    const double *low, *high;       /* [n] an interval around y, or NaN; or both NULL            */
};

struct sh_fig_measured {
    const char *title, *x, *y;      /* heading and axes with their units                         */
    const char *what;               /* what is drawn, in a caption: "perplexity"                 */
    int is_log_x, is_log_y;         /* values that are not above 0 are left out then             */
    double floor, ceiling;          /* limits of y where it is not log; NaN: as the values ask for */
    int n_lines;                    /* 1 to SH_MEASURED_LINES                                    */
    const struct sh_fig_measured_line *lines;
};

struct sh_fig_measured_panels {
    int n;                          /* 1 to SH_MEASURED_PANELS                                   */
    const struct sh_fig_measured *panel;    /* [n] */
};

#endif
