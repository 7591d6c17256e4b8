/* SPDX-License-Identifier: Apache-2.0 */
/* The highest rate of arrivals at which a share of all requests meets its limits, by bisection: the same
 * workload, arriving faster or slower. */
#ifndef SH_PLANNER_SIMULATE_RATE_H
#define SH_PLANNER_SIMULATE_RATE_H

#include "planner/simulate/simulate.h"

/* A new reading of the workload from its beginning; NULL and e on failure. It stays the opener's own. */
typedef struct sh_workload *sh_workload_fn(void *from, struct sh_err *e);

struct sh_rate {
    double speed;                       /* how many times as fast as the workload is; 0: at no speed */
    double requests_per_s;              /* arrivals a second then, from first to last              */
    int runs;
    int is_open;                        /* the limits hold at any speed that was tried: no limit found */
};

/* `share` in (0, 1]. *at holds the result of the last run that met the limits; the speed is within 1 %. */
int sh_sim_rate(const struct sh_sim_ask *a, struct sh_sim_cost *c, sh_workload_fn *again, void *from, double share,
                struct sh_sim_result *at, struct sh_rate *out, struct sh_err *e);

#endif
