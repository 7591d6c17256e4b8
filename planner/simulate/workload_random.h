/* SPDX-License-Identifier: Apache-2.0 */
/* A generated workload: Poisson arrivals (independent exponential gaps), lengths fixed or sampled. The
 * n-th request of a seed is the same whatever the rate, so that a search for a rate compares like with
 * like. */
#ifndef SH_PLANNER_SIMULATE_WORKLOAD_RANDOM_H
#define SH_PLANNER_SIMULATE_WORKLOAD_RANDOM_H

#include "planner/simulate/workload.h"

enum sh_spread { SH_SPREAD_FIXED, SH_SPREAD_UNIFORM, SH_SPREAD_EXPONENTIAL, SH_SPREAD_LOGNORMAL };

struct sh_lengths {
    enum sh_spread spread;
    double low, high;                   /* FIXED, EXPONENTIAL: low is the mean; UNIFORM: both ends;
                                         * LOGNORMAL: the mean and the deviation of the logarithm  */
};

/* "512", "100-900", "exp:512", "lognormal:512:0.8". `option` is named in the error. */
int sh_lengths_parse(const char *option, const char *text, struct sh_lengths *out, struct sh_err *e);

struct sh_workload_random {
    struct sh_workload base;
    double rate;                        /* requests a second                                      */
    struct sh_lengths prompt, output;
    uint64_t seed, requests;
    uint64_t at;                        /* how many have been given                                */
    double now;
};

/* rate > 0. Sampled lengths are cut to 1 and to what a request may have. */
void sh_workload_random(struct sh_workload_random *w, double rate, uint64_t requests, uint64_t seed);

#endif
