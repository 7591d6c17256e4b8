/* SPDX-License-Identifier: Apache-2.0 */
/* The figures, one line each: X(name) stands for fig_<name>.c and sh_figure_<name>. */
#ifndef PLOTS_FIGURES_H
#define PLOTS_FIGURES_H

#define SH_FIGURES(X) \
    X(heatmap) \
    X(persistence) \
    X(persistence_grid) \
    X(heads) \
    X(budget_curve) \
    X(leaderboard) \
    X(dropped_mass) \
    X(allocation) \
    X(capacity) \
    X(frontier) \
    X(latency) \
    X(occupancy) \
    X(compression) \
    X(quant) \
    X(drift) \
    X(score_change)

#endif
