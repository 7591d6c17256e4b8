/* SPDX-License-Identifier: Apache-2.0 */
/* What allocation draws: the budget of every head. */
#ifndef PLOTS_FIG_ALLOCATION_H
#define PLOTS_FIG_ALLOCATION_H

struct sh_fig_plan {
    const char *title;              /* "h2o, budget 0.2, allocator adakv"                        */
    int n_layers, n_heads;
    const double *tokens;           /* [n_layers, n_heads] of a KV head, NaN: not planned        */
};

struct sh_fig_plans {
    int n;
    const struct sh_fig_plan *plan; /* [n] */
};

#endif
