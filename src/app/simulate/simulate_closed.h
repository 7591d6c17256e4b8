/* SPDX-License-Identifier: Apache-2.0 */
/* simulate --concurrency: a fixed number of clients on a server with the clock of an engine. */
#ifndef SH_APP_SIMULATE_CLOSED_H
#define SH_APP_SIMULATE_CLOSED_H

#include "src/app/simulate/simulate_run.h"

struct sh_closed_row {
    const char *cache;                  /* "full", a budget, or a plan's file                     */
    int concurrency;
    double ttft[4], tpot[4];            /* seconds: p50, p90, p99, mean                            */
    double requests, seconds, steps, busy, most_running, tokens_in, tokens_out, pool;
    double output_rate, total_rate;     /* tokens/s: answers; prompts and answers                  */
    double per_gpu, usd;                /* answers/s of each GPU; for a million tokens of answers, NaN: no price */
    double good_share, goodput;         /* requests within the limits: of all; each second         */
    double prefix[SH_N_SIM_PREFIX];     /* figures with a prefix cache                            */
};

struct sh_closed {
    struct sh_closed_row *row;          /* [n], for each cache one for each concurrency, in order  */
    int n, gpus, clients;               /* clients: how many concurrencies                         */
    struct sh_engine engine;
};

/* Names the first option that has no meaning in a closed loop. */
int sh_closed_options(const struct sh_simulate_args *a, struct sh_err *e);

/* s: with args and common set, nothing else; it is then filled as far as needed. Clear both in any case. */
int sh_closed_run(struct sh_sim_study *s, struct sh_closed *out, struct sh_err *e);
void sh_closed_clear(struct sh_closed *c);

#endif
