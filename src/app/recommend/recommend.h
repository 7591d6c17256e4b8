/* SPDX-License-Identifier: Apache-2.0 */
/* Which deployment serves a load within limits on its times: GPUs, layout, number of replicas, settings, with and
 * without eviction. Requests are divided among replicas at random, so each of n sees Poisson arrivals at an n-th of the
 * rate. Arithmetic (recommend_screen.c) gives the fewest replicas that could be enough; a replica is then simulated
 * (planner/simulate, with the clock of an engine) in the order of what the deployments cost, and with more replicas
 * until the limits hold. So only those that may be among the best are simulated. */
#ifndef SH_APP_RECOMMEND_H
#define SH_APP_RECOMMEND_H

#include "planner/simulate/simulate.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_quality.h"
#include "src/app/common/serving.h"

enum { SH_LAYOUTS = 64, SH_LAYOUT_TEXT = 48, SH_REASON = 160, SH_RECOMMEND_TOP = 100 };

struct sh_recommend_args {
    struct sh_capacity_args capacity;   /* one model; gpu, budget: lists; a limit on quality with db */
    const char *engine, *prompt, *output, *price;
    double rate, slo_ttft, slo_tpot, goal;      /* requests/s; s; share of requests that meets both */
    long long requests, seed, machine, most, top;       /* machine, most: GPUs; top: rows          */
};

/* ---- layouts: recommend_layout.c ---- */

struct sh_layouts {
    int n, n_refused;
    struct sh_clock_layout at[SH_LAYOUTS];
    struct { int tp; char why[SH_REASON]; } refused[SH_LAYOUTS];        /* layouts that servers refuse */
};

/* tp and dp are powers of two whose product is at most `machine`, pp is 1, 2 or 4. dp > 1 only with experts, which are
 * then spread over all ranks, as they are where tp does not divide their width. */
void sh_recommend_layouts(const struct sh_kv_shape *s, const struct sh_weight_types *t, int machine, int uneven,
                          struct sh_layouts *out);

int sh_layout_gpus(const struct sh_clock_layout *l);

/* "tp 4, pp 2 x 3": of 3 replicas; ep and so on only where they are more than 1. */
void sh_layout_text(const struct sh_clock_layout *l, int replicas, char to[SH_LAYOUT_TEXT]);

/* ---- arithmetic: recommend_screen.c ---- */

struct sh_load {                        /* sums of all requests                                   */
    double rate, prompt, output;        /* requests/s; mean tokens                                */
    uint32_t prompt_at_goal;            /* the prompt that `goal` of all do not exceed             */
    uint32_t longest_prompt, longest;   /* tokens; of prompt and answer together                   */
    double slo_ttft, slo_tpot, goal;
};

/* A server with one cache, and what one request costs it. */
struct sh_screen {
    const struct sh_serving *v;
    const struct sh_load *load;
    struct sh_capacity_ask plain;       /* without the budget                                     */
    double pool;                        /* bytes for the caches of a rank of attention, all stages */
    struct sh_clock_sequence context;   /* context of a request half answered                     */
    double pairs;                       /* FLOP of attention for each token of a mean prompt       */
};

/* -1: no number of replicas can do; `why` says what is missing. */
int sh_screen_open(const struct sh_serving *v, const struct sh_load *load, struct sh_screen *out,
                   char why[SH_REASON]);

/* Can it serve `rate` requests/s with a mean time per token within the limit? Not a promise of percentiles. */
int sh_screen_serves(const struct sh_screen *s, double rate);

/* The highest rate that it serves, to 1 %. */
double sh_screen_rate(const struct sh_screen *s);

/* ---- one replica, simulated: recommend_run.c ---- */

struct sh_judged {
    double ttft[4], tpot[4];            /* s: p50, p99, mean, and at the goal                      */
    double good, busy, running, occupancy;      /* shares; mean sequences; mean share of the cache */
};

/* ---- the search: recommend_open.c, recommend.c ---- */

struct sh_recommend_cache {
    const char *name, *budget;          /* "full", or a budget; budget NULL: the full cache       */
    const struct sh_quality_point *measured;    /* NULL: the budget was not measured              */
    char *evidence;                     /* owned; NULL                                            */
};

/* A board, a cache and a layout. */
struct sh_candidate {
    int board, cache, layout, gpus;     /* gpus: of a replica                                     */
    int replicas;                       /* the fewest; until is_simulated those not ruled out      */
    int is_tried, is_simulated, is_out; /* a number was simulated; the fewest is found; none serves, see why */
    struct sh_judged at;                /* judgement with these replicas                           */
    char why[SH_REASON];
};

struct sh_recommend_row {
    const struct sh_candidate *of;
    const struct sh_gpu *board;
    const struct sh_recommend_cache *cache;
    struct sh_clock_layout layout;
    int replicas, gpus;                 /* gpus: of all replicas                                   */
    double usd_per_hour, usd;           /* usd: for a million tokens of answers; NaN: no price     */
    double ttft_margin, tpot_margin;    /* limit / what is expected - 1                            */
    double ttft_error, tpot_error;      /* errors of the clock; NaN: not measured                  */
    int error_runs, is_sure;            /* is_sure: no margin is smaller than the clock's error    */
    int is_cheapest, is_fewest;
    double rate;                        /* requests/s that all replicas serve, by arithmetic       */
    uint32_t chunk, sequences;          /* limits of a rank of attention                           */
    double util;
    int has_smaller;                    /* deployments with fewer GPUs exist                       */
    char next[SH_REASON + SH_LAYOUT_TEXT + 2];  /* the next smaller deployment, and why it fails   */
    char *vllm, *sglang;                /* owned                                                  */
};

struct sh_recommend {
    const struct sh_recommend_args *args;
    struct sh_capacity_settings settings;
    struct sh_capacity_names names;
    struct sh_kv_shape model;
    struct sh_engine engine;
    struct sh_lengths prompt, output;
    struct sh_load load;
    struct sh_gpu *board;               /* [n_board]                                              */
    double *price;                      /* [n_board], USD per GPU and hour; NaN: not known         */
    int n_board, n_cache, n_candidate, n_row;
    struct sh_recommend_cache cache[SH_CAPACITY_MOST + 2];
    struct sh_layouts layouts;
    struct sh_quality_point *point;
    struct sh_candidate *candidate;     /* [n_candidate]                                          */
    struct sh_recommend_row row[SH_RECOMMEND_TOP + 1];
    struct sh_recommend_sizes *sizes;   /* sizes of the simulated servers                         */
    long long simulations;
};

/* The rows are those of the boards and caches that cost least, and the one with the fewest GPUs if it is not among
 * them; without prices the fewest GPUs and then the least memory come first. -1: bad options, or no deployment serves
 * the load, and why. Clear in any case. */
int sh_recommend(struct sh_recommend *r, const struct sh_recommend_args *a, struct sh_err *e);
void sh_recommend_clear(struct sh_recommend *r);

/* Candidates and rows, once the rest is read: recommend.c. */
int sh_recommend_search(struct sh_recommend *r, struct sh_err *e);

/* The server of a candidate. Clear it after success. */
int sh_recommend_server(const struct sh_recommend *r, const struct sh_candidate *c, struct sh_serving *out,
                        struct sh_err *e);

/* One of its replicas, when there are so many: 1 if it is within the limits, 0 if not, -1 error. Unless the run is to
 * be whole, it may end when it is clear that it is not; *out is then of what was served. */
int sh_recommend_judge(struct sh_recommend *r, const struct sh_candidate *c, int replicas, int whole,
                       struct sh_judged *out, struct sh_err *e);
void sh_recommend_sizes_clear(struct sh_recommend *r);

/* Sets vllm and sglang: commands that start a replica, with options that these servers have (recommend_command.c). */
void sh_recommend_commands(const struct sh_recommend *r, struct sh_recommend_row *row);

#endif
