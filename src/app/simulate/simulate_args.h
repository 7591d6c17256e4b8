/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shears simulate as questions to the simulator: a model on a group of GPUs, a workload at one or more
 * rates, limits, and the caches that are compared. */
#ifndef SH_APP_SIMULATE_ARGS_H
#define SH_APP_SIMULATE_ARGS_H

#include <stdio.h>

#include "planner/simulate/prefix_cache.h"
#include "planner/simulate/simulate.h"
#include "planner/simulate/workload.h"
#include "planner/clock/step_time.h"
#include "src/base/common.h"
#include "src/app/capacity/capacity_ask.h"

enum { SH_SIM_RATES = 64 };

struct sh_simulate_args {
    struct sh_capacity_args capacity;   /* one model; gpu, tp, kv and budget are lists            */
    struct sh_list plan;
    const char *workload, *rate, *speed, *prompt, *output, *memory, *evict, *calibrate, *efficiency, *log;
    const char *plot_latency, *plot_occupancy, *db, *shard, *engine, *concurrency, *prefix_cache, *router;
    long long requests, max_seqs, dp, poll, block, prefixes, prefix_tokens, draft, replicas;
    long long prefill_workers, prefill_tp, prefill_ep, prefill_dp, decode_workers;  /* 0: not given */
    double transfer;                    /* bytes/s that a GPU of a prefill worker sends; below 0: not given */
    size_t host_cache, disk_cache;      /* bytes for each GPU                                     */
    double host_bandwidth, disk_bandwidth;      /* bytes/s for each GPU; below 0: not given        */
    double accept;                      /* probability of a proposed token; below 0: not given     */
    double slo_ttft, slo_tpot, goal;    /* below 0: none; goal: share of requests that meets them   */
    double overhead_s;                  /* seconds of a step's overhead; below 0: not given        */
    double rank_timeout;
    int max_rate, timeline, force;
};

/* ---- files: simulate_csv.c. Errors name the file and the line ---- */

/* A workload, read line by line however long it is: CSV (workload.h), or JSON lines as Mooncake publishes them
 * (workload_mooncake.c). */
struct sh_workload_file {
    struct sh_workload base;
    const char *path;                   /* not owned                                              */
    FILE *file;
    long long whole;                    /* bytes of the file; 0: a pipe                           */
    char *text;
    size_t bytes;
    int is_mooncake, has_line;          /* has_line: text is a row that was not given yet          */
    struct sh_workload_columns columns;
    long long line, requests, skipped;  /* skipped: rows without a prompt or an answer             */
    long long most;                     /* requests to read; 0: all                               */
    double first, last;
    struct sh_keys ids, keys;           /* ids: of the pieces of a prompt, as Mooncake names them   */
};

enum { SH_MOONCAKE_PIECE = 512 };       /* tokens of a prompt that an id is for */

/* A line of Mooncake's: {"timestamp": ms, "input_length": N, "output_length": N, "hash_ids": [one for each 512
 * tokens]}; hash_ids may be missing, other keys are ignored. 1: a request and its ids; 0: an empty line, or nothing to
 * simulate; -1. */
int sh_mooncake_row(const char *line, struct sh_request *out, struct sh_keys *ids, struct sh_err *e);

/* A path that opens and a first line that is known. Times are counted from the first request's. Close even after -1. */
int sh_workload_open(struct sh_workload_file *w, const char *path, struct sh_err *e);
int sh_workload_again(struct sh_workload_file *w, struct sh_err *e);    /* reads it again from its beginning */
void sh_workload_close(struct sh_workload_file *w);

/* FNV-1a over all bytes of the file: identifies the requests, whatever the file's name. A pipe is refused. */
int sh_workload_hash(struct sh_workload_file *w, uint64_t *out, struct sh_err *e);

/* Measured steps: the columns prefill_tokens, decode_sequences, context_tokens, seconds in this order, under a header.
 * At most SH_SIM_POINTS rows. */
int sh_sim_points_read(const char *path, struct sh_sim_point *out, int *n, struct sh_err *e);

/* ---- requests and settings ---- */

/* Requests from a file or generated, at one speed. */
struct sh_sim_source {
    struct sh_workload base;            /* passes on the requests of the file or generator, and counts */
    uint64_t given;                     /* requests passed on in this reading                      */
    void (*moved)(void *to, double share);      /* called now and then with the share that was read; NULL */
    void *to;
    int is_file;
    struct sh_workload_file file;
    struct sh_workload_random random;
    double rate;                        /* rate of the generated ones at speed 1                   */
    long long requests;
    uint64_t seed;
    double speed[SH_SIM_RATES];         /* at least one; for generated ones rate[i] / rate[0]       */
    int n;
};

/* Close it in any case. */
int sh_sim_source(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_source *out, struct sh_err *e);
/* Starts again from the beginning; `from` is a struct sh_sim_source. */
struct sh_workload *sh_sim_source_again(void *from, struct sh_err *e);
void sh_sim_source_close(struct sh_sim_source *s);

/* --prefix-cache and what belongs to it; block 0: none. */
int sh_sim_prefix(const struct sh_simulate_args *a, const struct sh_sim_source *s, struct sh_prefix_ask *out,
                  struct sh_err *e);

/* A prefix cache can be simulated only for models in which all layers keep all tokens. -1: another model. */
int sh_sim_prefix_suits(const struct sh_capacity_ask *ask, struct sh_err *e);

/* --router, which needs --replicas; by prefixes also --prefix-cache. */
int sh_sim_router(const struct sh_simulate_args *a, enum sh_router *out, struct sh_err *e);

/* Steps, memory, limits. Refuses options that exclude each other. */
int sh_sim_settings(const struct sh_simulate_args *a, struct sh_sim_ask *out, struct sh_err *e);

/* The step settings of an engine, where no option sets them; refuses options that the engine excludes. */
int sh_sim_engine_settings(const struct sh_simulate_args *a, const struct sh_engine *g, const struct sh_gpu *b,
                           struct sh_sim_ask *out, struct sh_err *e);

/* "weights=0.8,cache=0.7,products=0.6,attention=0.4,link=0.7"; the others are 1. */
int sh_sim_efficiency_parse(const char *text, struct sh_sim_efficiency *out, struct sh_err *e);

#endif
