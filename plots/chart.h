/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over one axis, and bars of parts: what the figures of capacity and simulation show. The data follow the
 * rules of figure.h, which holds them. */
#ifndef PLOTS_CHART_H
#define PLOTS_CHART_H

struct sh_gp;

struct sh_fig_line {
    const char *label;              /* the plan: "full", "0.2"                                   */
    int n, look;                    /* colour, from 0; labels of one look share it                */
    int dash;                       /* 0 solid, 1 dashed, more: dotted                            */
    const double *x, *y;            /* [n] x ascending; NaN: no value                            */
};

struct sh_fig_chart {
    const char *title, *x, *y;      /* heading and axes with their units                         */
    int is_log;                     /* upwards, of values above 0; others are left out then       */
    int is_close;                   /* the axis begins near the least value, not at 0             */
    double limit;                   /* drawn across the panel; NaN: none                         */
    const char *limit_label;
    int n_lines;
    const struct sh_fig_line *lines;
};

enum { SH_STACK_PARTS = 7 };        /* one colour each                                           */

struct sh_fig_stack {
    const char *label;              /* the bar: "0.2, int4"                                      */
    double part[SH_STACK_PARTS];    /* GiB, from the left; NaN or 0: not there                   */
    double limit, whole;            /* GiB that may be used, and of the GPU; NaN: not known    */
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

/* How the lines of a chart are drawn: gnuplot's style with its marks, "linespoints pt 7 ps 0.4". */
enum sh_chart_style { SH_CHART_MARKS, SH_CHART_LINES };

/* The charts' data blocks, then each chart in a box of these inches from the left, its legend below it. */
struct sh_fig_data;
void sh_charts_draw(struct sh_gp *gp, const struct sh_fig_data *data, const struct sh_fig_charts *d, double wide,
                    double tall, enum sh_chart_style how);

#endif
