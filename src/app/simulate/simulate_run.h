/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of shears simulate: each cache (whole, each budget, each plan) on each server (GPU, number of GPUs, format)
 * at each rate, on the same requests. A cell of that sweep is a row of figures, new or from the store.
 * simulate_sweep.c says who runs which. */
#ifndef SH_APP_SIMULATE_RUN_H
#define SH_APP_SIMULATE_RUN_H

#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_quality.h"
#include "src/app/common/serving.h"
#include "src/app/plan/plan_file.h"
#include "src/app/simulate/simulate_args.h"
#include "src/app/store/results.h"
#include "src/base/out.h"
#include "src/base/progress.h"
#include "src/jobs/mpi_job.h"
#include "src/jobs/shard_option.h"

enum { SH_SIM_CELLS = 100000 };         /* cells of one sweep */

/* One cache on one server. */
struct sh_sim_cache {
    const struct sh_gpu *board;
    const char *kv, *name, *budget, *path;      /* budget, path: NULL unless it is one, a plan's    */
    int tp;
    const struct sh_plan *plan;
    const struct sh_quality_point *measured;    /* the budget's result; NULL: none                */
    char *on, *evidence;                /* owned; on: ", H100-SXM, tp 2" as far as servers differ   */
    uint64_t pool;                      /* bytes for caches on each GPU                           */
    uint64_t costs;                     /* hash of what steps cost here: the server, whatever its name */
};

struct sh_sim_row {
    const struct sh_sim_cache *cache;
    double speed;
    double at[SH_N_SIM_METRIC];         /* NaN: not defined                                       */
    double prefix[SH_N_SIM_PREFIX];     /* figures with a prefix cache                            */
    int is_there;                       /* it has figures; else it belongs to another shard        */
    int is_known;                       /* they were in the store before this command              */
    char *settings;                     /* what it is kept under; owned; NULL: nothing is kept      */
    struct sh_timeline *occupancy;      /* owned; NULL: nobody asked                               */
};

/* The server that is set up. */
struct sh_sim_server {
    const struct sh_sim_cache *cache;   /* NULL: none                                             */
    struct sh_sim_cost cost;
    struct sh_clock clock;              /* clock of the cost, with an engine                      */
    uint64_t *layers;
};

struct sh_sim_study {
    const struct sh_simulate_args *args;
    const struct sh_common *common;
    struct sh_sim_ask ask;
    struct sh_sim_source source;
    struct sh_capacity_names names;
    struct sh_capacity_settings settings;
    struct sh_kv_shape model;
    struct sh_gpu *board;             /* [n_board]                                              */
    int n_board;
    struct sh_sim_efficiency efficiency;
    struct sh_engine engine;            /* where has_engine                                       */
    int has_engine;
    struct sh_sim_fit fit;
    int n_point;                        /* points that the fit is of; 0: none                     */
    struct sh_plan *plan;               /* [args->plan.n]                                         */
    struct sh_quality_point *point;     /* measured budgets of the store; owned                  */
    const struct sh_quality_point *least[SH_CAPACITY_MOST];     /* the one for each format; NULL: nobody asked */
    uint64_t longest;                   /* tokens of a request; 0: nobody needs it                */
    struct sh_sim_cache *cache;         /* [n_cache]: n_each on each server                       */
    int n_cache, n_each;
    struct sh_sim_row *row;             /* [n_row]: those of a cache lie together, one for each speed */
    int n_row;
    struct sh_sim_server server;
    struct sh_sim_result *result;       /* result of the run that is going on                     */
    FILE *log;                          /* NULL: none                                             */
    struct sh_progress progress;        /* progress in all_runs; `runs` are over, `tried` are a search's */
    double all_runs, runs;
    int tried;
    struct sh_part shard;
    struct sh_job cluster;
};

/* Reads what the options name and lays out the rows, without figures. Clear in any case. */
int sh_sim_study_open(struct sh_sim_study *s, struct sh_err *e);
void sh_sim_study_clear(struct sh_sim_study *s);

/* The smallest measured budget for each cache format, as shears capacity chooses it for the longest request. */
int sh_sim_quality(struct sh_sim_study *s, struct sh_err *e);
/* Sets s->longest: tokens of the longest request of its source. */
int sh_sim_longest(struct sh_sim_study *s, struct sh_err *e);

/* A server with that cache is set up. */
int sh_sim_server_open(const struct sh_sim_study *s, const struct sh_sim_cache *v, struct sh_sim_server *to,
                       struct sh_err *e);
void sh_sim_server_close(struct sh_sim_server *server);

/* Shows progress: this share of a reading of the workload is over. */
void sh_sim_moved(void *study, double share);

/* For the rows [first, first + n) of one cache that are not known: about how many runs they take; runs them. */
double sh_sim_runs(const struct sh_sim_study *s, int first, int n);
int sh_sim_run(struct sh_sim_study *s, int first, int n, struct sh_err *e);

/* All rows that the store (NULL: none) does not know, by this process or all ranks, or those of this shard. */
int sh_sim_sweep(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e);

/* Is row i of this shard? */
int sh_sim_is_own(const struct sh_sim_study *s, int i);

/* The store: sets the settings of all rows; fills rows that are not known yet, and marks them as known unless they are
 * new; keeps those of the rows [first, first + n) that are new, in one transaction; erases the results of rows that are
 * not known. */
int sh_sim_names(struct sh_sim_study *s, struct sh_err *e);
int sh_sim_find(struct sh_sim_study *s, int are_new, struct sh_store *store, struct sh_err *e);
int sh_sim_keep(const struct sh_sim_study *s, int first, int n, struct sh_store *store, struct sh_err *e);
int sh_sim_forget(const struct sh_sim_study *s, struct sh_store *store, struct sh_err *e);

/* The figures of a prefix cache; tokens: those of all prompts. */
void sh_sim_prefix_fill(const struct sh_prefix_count *c, uint64_t reused, uint64_t tokens, double to[SH_N_SIM_PREFIX]);

/* Hash of what steps cost. */
uint64_t sh_sim_costs(const struct sh_sim_cost *c);

#endif
