/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shears simulate as what the simulator is asked: a model on a group, a workload at one or more
 * rates, limits, and the caches that are compared. */
#ifndef SH_APP_SIMULATE_ARGS_H
#define SH_APP_SIMULATE_ARGS_H

#include "planner/simulate/simulate.h"
#include "planner/simulate/workload.h"
#include "src/base/common.h"
#include "src/app/capacity/capacity_ask.h"
#include "src/app/simulate/simulate_csv.h"

enum { SH_SIM_RATES = 64 };

struct sh_simulate_args {
    struct sh_capacity_args capacity;   /* one model; gpu, tp, kv and budget are lists            */
    struct sh_list plan;
    const char *workload, *rate, *speed, *prompt, *output, *memory, *evict, *calibrate, *efficiency, *log;
    const char *plot_latency, *plot_occupancy, *db, *shard;
    long long requests, max_seqs;
    double slo_ttft, slo_tpot, goal;    /* below 0: none; goal: share of requests that meets them   */
    double overhead_s;                  /* of a step; below 0: not given                           */
    double rank_timeout;
    int max_rate, timeline, force;
};

/* Requests from a file or generated, at one speed. */
struct sh_sim_source {
    struct sh_workload base;            /* gives what the file or the generator gives, and counts  */
    uint64_t given;                     /* of this reading                                         */
    void (*moved)(void *to, double share);      /* told now and then how much of a reading is over; NULL */
    void *to;
    int is_file;
    struct sh_workload_file file;
    struct sh_workload_random random;
    double rate;                        /* of the generated ones at speed 1                        */
    long long requests;
    uint64_t seed;
    double speed[SH_SIM_RATES];         /* at least one; for generated ones rate[i] / rate[0]       */
    int n;
};

int sh_sim_source(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_source *out, struct sh_err *e);
void sh_sim_source_close(struct sh_sim_source *s);

/* From its beginning; `from` is a struct sh_sim_source. */
struct sh_workload *sh_sim_source_again(void *from, struct sh_err *e);

/* Steps, memory, limits; checks what excludes each other. */
int sh_sim_settings(const struct sh_simulate_args *a, struct sh_sim_ask *out, struct sh_err *e);

/* "weights=0.8,cache=0.7,products=0.6,attention=0.4,link=0.7"; what is not named stays 1. */
int sh_sim_efficiency_parse(const char *text, struct sh_sim_efficiency *out, struct sh_err *e);

#endif
