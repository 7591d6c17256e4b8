/* SPDX-License-Identifier: Apache-2.0 */
/* What budget-curve and leaderboard draw: the policies of each trace over their budgets. */
#ifndef PLOTS_CURVES_H
#define PLOTS_CURVES_H

struct sh_fig_curve {
    const char *label;              /* the policy: "h2o", "h2o:recent=5"                         */
    int is_bound;                   /* 1: sees the future (oracles); drawn apart from the others */
    int is_over;                    /* 1: keeps more than its budget, and cannot be compared     */
    int n;
    const double *share;            /* [n] ascending: budget as a share of the sequence, 0..1    */
    const double *mass, *low, *high;    /* [n] kept mass 0..1 and its 95 % interval, or NaN      */
    const double *no_sink;          /* [n] kept mass without sinks and the token itself, or NaN  */
    const double *pivotal;          /* [n] pivotal tokens that are kept, 0..1, or NaN            */
    const double *error;            /* [n] relative error of the output, >= 0, or NaN            */
    double height;                  /* mean of mass over the shares; NaN: not comparable         */
};

struct sh_fig_curves {
    const char *title;              /* the trace                                                 */
    const char *note;               /* what the heights are over: "shares 0.1 to 1"              */
    int n_curves;                   /* best height first; bounds anywhere                        */
    const struct sh_fig_curve *curve;
};

struct sh_fig_curve_sets {
    int n;
    const struct sh_fig_curves *set;    /* [n] */
};

#endif
