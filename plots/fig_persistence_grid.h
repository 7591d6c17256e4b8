/* SPDX-License-Identifier: Apache-2.0 */
/* What persistence-grid draws: the lift of each trace over what counts as pivotal. */
#ifndef PLOTS_FIG_PERSISTENCE_GRID_H
#define PLOTS_FIG_PERSISTENCE_GRID_H

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

#endif
