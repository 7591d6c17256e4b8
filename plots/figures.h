/* SPDX-License-Identifier: Apache-2.0 */
/* The figures, one line each: X(name, data) stands for fig_<name>.c with its sh_figure_<name>, and for the data it
 * draws, struct sh_fig_<data>, which its header describes. */
#ifndef PLOTS_FIGURES_H
#define PLOTS_FIGURES_H

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

#endif
