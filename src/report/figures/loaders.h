/* SPDX-License-Identifier: Apache-2.0 */
/* What fills the data of the figures that shears plot draws, one line each: X(name) stands for figure_<name>.c and its
 * sh_figure_load_<name>. */
#ifndef SH_REPORT_FIGURES_LOADERS_H
#define SH_REPORT_FIGURES_LOADERS_H

#define SH_FIGURE_LOADERS(X) \
    X(maps) \
    X(persistence) \
    X(curves) \
    X(dropped) \
    X(plan) \
    X(evals) \
    X(drift)

#endif
