/* SPDX-License-Identifier: Apache-2.0 */
/* What dropped-mass draws: each trace over the share of each row's scores that is kept. NaN: not defined. */
#ifndef PLOTS_FIG_DROPPED_MASS_H
#define PLOTS_FIG_DROPPED_MASS_H

struct sh_fig_dropped {
    const char *title;              /* the trace                                                 */
    int n;
    const double *share;            /* [n] ascending, 0..1                                       */
    const double *measured;         /* [n] mass of what is dropped, 0..1: mean over layers       */
    const double *least, *most;     /* [n] range of it over the layers                           */
    const double *law, *law_cut;    /* [n] D(rho), and D cut at the largest possible score       */
    const double *printed;          /* [n] Theorem 4.1 where it says something, in units of |v|  */
    const double *error;            /* [n] measured error of the output in units of max |v|      */
};

struct sh_fig_drops {
    int n;
    const struct sh_fig_dropped *trace; /* [n] */
};

#endif
