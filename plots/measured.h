/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of measured values with their errors: what compression, quant, drift and score-change show. The data
 * follow the rules of figure.h, which holds them. */
#ifndef PLOTS_MEASURED_H
#define PLOTS_MEASURED_H

#include <stdio.h>

#include "src/base/err.h"

struct sh_gp;
struct sh_fig_data;

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
    double floor, ceiling;          /* of y where it is not log; NaN: as the values ask for      */
    int n_lines;                    /* 1 to SH_MEASURED_LINES                                    */
    const struct sh_fig_measured_line *lines;
};

struct sh_fig_measured_panels {
    int n;                          /* 1 to SH_MEASURED_PANELS                                   */
    const struct sh_fig_measured *panel;    /* [n] */
};

/* Points joined by lines, an interval as a band; or, with is_bars, x as the middle of bars of width `bar`:
 * the first line filled, the others as outlines. Two panels a row, the legend of each below it. */
void sh_measured_caption(FILE *to, const struct sh_fig_measured_panels *d); /* what the panels show, each once */
int sh_measured_draw(struct sh_gp *gp, const struct sh_fig_data *data, const struct sh_fig_measured_panels *d,
                     double bar, struct sh_err *e);

#endif
