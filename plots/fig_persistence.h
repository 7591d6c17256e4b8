/* SPDX-License-Identifier: Apache-2.0 */
/* What persistence draws: the values of each trace, layer by layer. */
#ifndef PLOTS_FIG_PERSISTENCE_H
#define PLOTS_FIG_PERSISTENCE_H

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

#endif
