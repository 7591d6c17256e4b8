/* SPDX-License-Identifier: Apache-2.0 */
/* Continuous batching on one GPU or a tensor-parallel group, step by step. The rules, which are those of a server with
 * chunked prefill and preemption by recomputation:
 *
 *  1. Requests are taken in the order of their arrival. One that could never fit is refused when its turn comes.
 *  2. A step gives each running sequence, oldest admission first, the tokens up to its next output token: one
 *     while it answers, what is left of its prompt before. All of a step are at most `step_tokens`.
 *  3. A sequence gets its tokens only with the bytes that it needs then. Where they are missing, the sequence
 *     admitted last is preempted: its bytes are free, its answer so far becomes part of what it must read
 *     again. It is admitted again before anything that waits.
 *  4. After a step in which nobody was preempted, if it has tokens left, the next request that has arrived
 *     is admitted as long as fewer than `max_running` run and its first tokens' bytes are there.
 *  5. Every sequence that reached its next output token has it at the step's end, whose length is that of
 *     simulate_cost.h. A chunk does not cross the end of a prompt. The last output token is never stored.
 *
 *  6. With a prefix cache (prefix_cache.h), an admitted sequence takes the blocks that are there and begins to read
 *     after them; the step that admits it lasts longer by the time to load those of host and disk. Blocks are in the
 *     cache when the step that computes them ends, and those of running sequences count once. Blocks that nobody holds
 *     are forgotten when memory is needed. With a budget, a sequence leaves its blocks, which are whole, when its
 *     prompt has been read, and goes on with a copy of what it keeps, which that step reads and writes.
 *
 *  7. With several replicas, a router gives each request, when it arrives, to one of them: to each in turn; to the one
 *     with the fewest requests, the first of equals; or to the one whose prefix cache has most of its text, of equals
 *     the one with the fewest requests. There they wait in its own queue, which is in memory.
 *
 * With SH_SIM_SLOTS a sequence takes the most bytes it will ever need when it is admitted, as a cache with fixed slots
 * per head does; nothing is then preempted. */
#ifndef SH_PLANNER_SIMULATE_H
#define SH_PLANNER_SIMULATE_H

#include <stdint.h>

#include "planner/simulate/prefix_cache.h"
#include "planner/simulate/simulate_cost.h"
#include "planner/simulate/workload.h"

/* ---- what a run records, in fixed memory however long it is (simulate_series.c) ---- */

/* Quantiles of any number of durations in fixed memory: counts in cells whose edges grow by a factor of 1.001, from 1
 * us to 10^7 s. A quantile is the middle of the cell that holds the value of that rank, so it is off by 0.05 % at most;
 * mean, least and largest are exact, and quantiles never leave them. What is outside counts in the first or last
 * cell. */
enum { SH_QUANTILE_CELLS = 29949 };     /* ln(10^13) / ln(1.001), rounded up                      */

struct sh_quantile {
    uint64_t n;
    double sum, least, largest;
    uint64_t cell[SH_QUANTILE_CELLS];
};

/* A struct of zeros is empty. */
void sh_quantile_add(struct sh_quantile *q, double value);

/* The smallest value that at least `share` of all do not exceed (nearest rank); NaN when empty. */
double sh_quantile_at(const struct sh_quantile *q, double share);
double sh_quantile_mean(const struct sh_quantile *q);

/* A quantity over time, as means of equal stretches, in fixed memory: when the stretches are full, each two become one
 * and the next ones are twice as long. */
enum { SH_TIMELINE_BINS = 512 };        /* even */

struct sh_timeline {
    double width;                       /* seconds of a stretch                                   */
    double sum[SH_TIMELINE_BINS];       /* value times seconds                                    */
    double end;                         /* end of what was told so far, seconds                   */
};

/* First stretches of `width` seconds. */
void sh_timeline_start(struct sh_timeline *t, double width);

/* The quantity was `value` from `from` to `to`; stretches in any order that do not overlap. */
void sh_timeline_add(struct sh_timeline *t, double from, double to, double value);

/* Stretches in use, and the mean of one (of the part of it that has passed). */
int sh_timeline_count(const struct sh_timeline *t);
double sh_timeline_mean(const struct sh_timeline *t, int i);

/* ---- a run ---- */

enum sh_sim_memory { SH_SIM_PAGED, SH_SIM_SLOTS };
enum sh_router { SH_ROUTE_IN_TURN, SH_ROUTE_LEAST_LOADED, SH_ROUTE_PREFIX };

/* A request that is over. */
struct sh_sim_done {
    struct sh_request request;          /* arrival after scaling                                  */
    uint64_t number;                    /* place in the order of arrival, from 0                   */
    double admitted_s, first_s, finished_s;     /* NaN when refused                               */
    uint32_t preemptions;
    int is_refused;
};

struct sh_sim_ask {
    uint32_t step_tokens, max_running;  /* each at least 1                                        */
    enum sh_sim_memory memory;
    enum sh_sim_evict evict;
    double slo_ttft_s, slo_tpot_s;      /* infinite: none                                         */
    double speed;                       /* factor of the rate of arrivals; 1: as they are          */
    void (*done)(void *to, const struct sh_sim_done *d);        /* may be NULL                    */
    void *to;
    int (*stopped)(void);               /* asked now and then; not 0: give up; NULL                */
    struct sh_prefix_ask prefix;        /* block 0: none; not with SH_SIM_SLOTS, SH_EVICT_CHUNK or recurrent states */
    uint32_t replicas;                  /* servers that are all alike; 0 is 1                      */
    enum sh_router router;
};

struct sh_sim_result {
    uint64_t requests, finished, refused, good, preemptions, steps, largest_batch;
    uint64_t tokens_in, tokens_out;     /* prompts and answers of what finished                   */
    uint64_t tokens_fed;                /* tokens that passed the model, recomputed ones included                 */
    uint64_t tokens_recomputed, tokens_reused;  /* reused: taken from the prefix cache             */
    struct sh_prefix_count prefix;
    double start_s, end_s, busy_s;      /* first arrival, last answer, time in steps              */
    double last_arrival_s;
    double throughput, goodput;         /* output tokens and good requests a second, from start to end */
    double running_mean, occupancy_mean, occupancy_peak;        /* over the time from start to end */
    struct sh_quantile ttft, tpot, latency, queue;      /* tpot: of answers of two tokens and more */
    struct sh_timeline occupancy;       /* of one server; empty with replicas, whose shares and times are means */
};

/* The result is large (1 MB): the caller has it on the heap. Fails when the workload does, when it is empty, and when
 * tokens or bytes do not add up in the end. Deterministic. */
int sh_simulate(const struct sh_sim_ask *a, struct sh_sim_cost *c, struct sh_workload *w,
                struct sh_sim_result *out, struct sh_err *e);

/* ---- the highest rate (simulate_rate.c) ---- */

/* A new reading of the workload from its beginning; NULL and e on failure. It stays the opener's own. */
typedef struct sh_workload *sh_workload_fn(void *from, struct sh_err *e);

struct sh_rate {
    double speed;                       /* how many times as fast as the workload is; 0: at no speed */
    double requests_per_s;              /* arrivals a second then, from first to last              */
    int runs;
    int is_open;                        /* the limits hold at any speed that was tried: no limit found */
};

/* The highest rate of arrivals at which a share of all requests, `share` in (0, 1], meets its limits, by bisection: the
 * same workload, arriving faster or slower. *at holds the result of the last run that met the limits; the speed is
 * within 1 %. */
int sh_sim_rate(const struct sh_sim_ask *a, struct sh_sim_cost *c, sh_workload_fn *again, void *from, double share,
                struct sh_sim_result *at, struct sh_rate *out, struct sh_err *e);

#endif
