/* SPDX-License-Identifier: Apache-2.0 */
/* Efficiencies from measured steps: the overhead, one efficiency for everything that memory moves and one for
 * everything that is computed, such that the squared logarithms of predicted over measured seconds are least. A
 * search by coordinates from a grid of starts; the same points give the same answer. */
#ifndef SH_PLANNER_SIMULATE_FIT_H
#define SH_PLANNER_SIMULATE_FIT_H

#include "planner/simulate/simulate_cost.h"

/* A step that was timed: a prompt's chunk from its beginning, beside sequences that each decode one token with so
 * many behind them. Whole caches. */
struct sh_sim_point {
    uint32_t prefill, sequences, context;
    double seconds;
};

enum { SH_SIM_POINTS = 4096 };

struct sh_sim_fit {
    struct sh_sim_efficiency efficiency;        /* link as it was                                 */
    double rms, worst;                  /* relative error: root of the mean square, and the largest */
    int is_bound;                       /* a point is faster than the board's numbers allow        */
};

/* 3 points at least. `c` then has the fitted efficiencies. Misuse: fewer points, or values that make none. */
int sh_sim_fit(struct sh_sim_cost *c, const struct sh_sim_point *p, int n, struct sh_sim_fit *out, struct sh_err *e);

/* What the model says of a point. */
double sh_sim_point_seconds(struct sh_sim_cost *c, const struct sh_sim_point *p);

#endif
