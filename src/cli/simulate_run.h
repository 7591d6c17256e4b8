/* SPDX-License-Identifier: Apache-2.0 */
/* What shears simulate runs: each cache (whole, each budget, each plan) at each rate, side by side. */
#ifndef SH_CLI_SIMULATE_RUN_H
#define SH_CLI_SIMULATE_RUN_H

#include "src/base/out.h"
#include "src/cli/capacity_names.h"
#include "src/cli/plan_file.h"
#include "src/cli/simulate_args.h"

/* One run, without its distributions. */
struct sh_sim_row {
    char *plan, *evidence;              /* owned                                                  */
    double rate;                        /* arrivals a second, from first to last                   */
    double speed;
    int has_max, max_is_open;           /* --max-rate was asked; no limit was found                */
    double max_rate, max_speed;
    uint64_t requests, finished, refused, preemptions, steps, largest_batch, tokens_in, tokens_out, recomputed, pool;
    double throughput, goodput, good_share, seconds, busy_share, running_mean, occupancy_mean, occupancy_peak;
    double ttft[4], tpot[4], latency[4], queue[4];      /* p50, p90, p99, mean                    */
    struct sh_timeline occupancy;
};

struct sh_sim_study {
    const struct sh_simulate_args *args;
    struct sh_sim_ask ask;
    struct sh_sim_source source;
    struct sh_capacity_names names;
    struct sh_capacity_settings settings;
    struct sh_kv_shape model;
    struct sh_board board;
    struct sh_sim_efficiency efficiency;
    struct sh_sim_fit fit;
    int n_point;                        /* that the fit is of; 0: none                            */
    struct sh_plan *plan;               /* [args->plan.n]                                          */
    struct sh_sim_row *row;
    int n_row;
    struct sh_file *log_file;
    FILE *log;
};

/* Everything: reads, runs, fills the rows. Release in any case. */
int sh_sim_study(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_study *out, struct sh_err *e);
void sh_sim_study_clear(struct sh_sim_study *s);

/* Rows, remarks. */
void sh_sim_show(struct sh_out *o, const struct sh_sim_study *s, int is_text);

/* --db: replaces what the store has of the same settings. */
struct sh_store;
int sh_sim_keep(const struct sh_sim_study *s, struct sh_store *store, uint64_t seed, struct sh_err *e);

/* --plot-latency and --plot-occupancy. */
int sh_sim_plot_latency(const struct sh_sim_study *s, const char *path, struct sh_err *e);
int sh_sim_plot_occupancy(const struct sh_sim_study *s, const char *path, struct sh_err *e);

#endif
