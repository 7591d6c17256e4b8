/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the latency figure, of simulations that were just run or that a store holds. */
#ifndef SH_REPORT_FIGURES_LATENCY_H
#define SH_REPORT_FIGURES_LATENCY_H

#include "src/base/out.h"
#include "src/report/figures/figure_data.h"

enum { SH_TTFT, SH_TPOT, SH_N_LATENCY };        /* time to the first token, of each further one */
enum { SH_P50, SH_P99, SH_N_QUANTILE };

struct sh_latency {                     /* one cache under one rate                               */
    int cache;                          /* its number: entries of one cache are together, by rate */
    const char *name;                   /* name of the cache                                      */
    double rate;                        /* requests per second, or clients                        */
    double seconds[SH_N_LATENCY][SH_N_QUANTILE];
};

/* The unit that suits the times of all n. */
struct sh_time_unit sh_latency_unit(const struct sh_latency *at, int n, int which);

/* load: what a rate is a number of; limit: seconds that may be taken, NaN: any. Copies what it is given but load. */
void sh_latency_fill(struct sh_figure_data *d, const struct sh_latency *at, int n, const char *load,
                     const double limit[SH_N_LATENCY]);

#endif
