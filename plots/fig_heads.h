/* SPDX-License-Identifier: Apache-2.0 */
/* What heads draws: every head of each trace. */
#ifndef PLOTS_FIG_HEADS_H
#define PLOTS_FIG_HEADS_H

struct sh_fig_heads {
    const char *title;              /* the trace                                                 */
    int n_layers, n_heads;
    const double *ratio;            /* [n_layers, n_heads] 0..1, NaN as above                    */
    const double *lift;             /* [n_layers, n_heads] beyond recency, NaN as above, or NULL */
};

struct sh_fig_head_maps {
    int n;
    const struct sh_fig_heads *trace;   /* [n] */
    const char *ratio_settings, *lift_settings; /* "R = 0, alpha 1/n"; or NULL                   */
};

#endif
