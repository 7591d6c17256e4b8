/* SPDX-License-Identifier: Apache-2.0 */
/* What a sequence costs a simulated server at each length, as tables that grow to the longest one met: bytes that it
 * holds, bytes and FLOPs that attention takes. Bytes are those of kv_rule.h, times come from capacity.h with each kind
 * of work slowed down by an efficiency of its own. One GPU of a tensor-parallel group; pipelines, expert parallelism
 * and copies of attention only with a clock, which has the layout: then bytes are those of all ranks and stages.
 *
 *     seconds of a step = overhead + max((weights / e_weights + cache / e_cache) / bandwidth,
 *                                        (products / e_products + attention / e_attention) / peak)
 *                                  + link bytes / (e_link * link) */
#ifndef SH_PLANNER_SIMULATE_COST_H
#define SH_PLANNER_SIMULATE_COST_H

#include <stddef.h>
#include <stdint.h>

#include "planner/capacity/capacity.h"
#include "planner/clock/step_time.h"

struct sh_sim_efficiency {
    double weights, cache, products, attention, link;   /* efficiencies in (0, 1]; 1: the bound itself */
    double overhead_s;                  /* seconds of every step: launches, sampling, scheduling  */
};

/* When a budget evicts: once the prompt is whole, as most methods do, or after each of its chunks. */
enum sh_sim_evict { SH_EVICT_PROMPT, SH_EVICT_CHUNK };

struct sh_sim_size {                    /* at a number of tokens                                  */
    uint64_t kept, whole;               /* bytes held: with the budget, and before it evicts      */
    double kept_read, whole_read;       /* bytes that one pass of attention reads                 */
    double kept_flops, whole_flops;     /* FLOPs of one query after that many tokens               */
    double prompt_flops;                /* FLOPs of all queries of such a prompt                  */
};

struct sh_sim_cost {
    struct sh_capacity_ask ask, plain;  /* plain: the same without a budget                       */
    struct sh_roofline line;            /* slowed down                                            */
    struct sh_sim_efficiency efficiency;
    uint64_t plain_states;              /* bytes of a sequence's states; with a clock              */
    int prompt_tp;                      /* sh_clock_prompt_tp with a clock, else tp               */
    const struct sh_clock *clock;       /* not owned; gives the times in place of `line`; NULL: none */
    uint64_t pool;                      /* bytes for caches on this GPU                           */
    struct sh_sim_size *size;           /* [n]; grows                                             */
    size_t n;
};

/* `ask` has tp >= 1, pp = ep = 1, no draft and no shared prefix, or it is misused; what it points at is kept by the
 * caller. A model whose weights do not fit fails. Release with sh_sim_cost_clear. */
int sh_sim_cost(const struct sh_capacity_ask *ask, const struct sh_sim_efficiency *f, struct sh_sim_cost *out,
                struct sh_err *e);
void sh_sim_cost_clear(struct sh_sim_cost *c);

/* Steps take an engine's time from now on, and caches what `memory` bytes of a GPU leave; -1: no room for weights. */
int sh_sim_cost_clock(struct sh_sim_cost *c, const struct sh_clock *clock, double memory, struct sh_err *e);

/* Other efficiencies from now on. */
void sh_sim_cost_slow(struct sh_sim_cost *c, const struct sh_sim_efficiency *f);

/* What a sequence of n tokens costs, computed and not looked up. */
struct sh_sim_size sh_sim_size_at(const struct sh_sim_cost *c, uint64_t n);

/* Fill the tables up to this many tokens, at most SH_REQUEST_TOKENS. */
void sh_sim_cost_reach(struct sh_sim_cost *c, size_t tokens);

/* While a sequence goes from `from` to `to` tokens, of which its prompt has `prompt`; what it holds afterwards; and the
 * most it ever holds with `total` tokens in the end and steps of at most `step`. Within reach. No chunk crosses the
 * prompt's end. */
uint64_t sh_sim_need(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t from, uint32_t to, uint32_t prompt);
uint64_t sh_sim_rest(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t at, uint32_t prompt);
uint64_t sh_sim_peak(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t prompt, uint32_t total,
                     uint32_t step);

/* Add what the same stretch costs to a step's work (raw bytes and FLOPs; tokens and logits are the caller's). */
void sh_sim_work(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t from, uint32_t to, uint32_t prompt,
                 struct sh_step_work *w);

/* Seconds of a step. */
double sh_sim_seconds(const struct sh_sim_cost *c, const struct sh_step_work *w);

/* ---- efficiencies from measured steps (simulate_fit.c) ---- */

/* A step that was timed: a prompt's chunk from its beginning, and sequences that each decode one token after `context`
 * others. Whole caches. */
struct sh_sim_point {
    uint32_t prefill, sequences, context;
    double seconds;
};

enum { SH_SIM_POINTS = 4096 };

struct sh_sim_fit {
    struct sh_sim_efficiency efficiency;        /* link as it was                                 */
    double rms, worst;                  /* relative error: root of the mean square, and the largest */
    int is_bound;                       /* a point is faster than the board's numbers allow        */
};

/* Fits the overhead, one efficiency for everything that memory moves and one for everything that is computed, such that
 * the sum of the squared logarithms of predicted over measured seconds is least: a search by coordinates from a grid of
 * starts; the same points give the same answer. At least 3 points. `c` then has the fitted efficiencies. Misuse: fewer
 * points, or invalid values. */
int sh_sim_fit(struct sh_sim_cost *c, const struct sh_sim_point *p, int n, struct sh_sim_fit *out, struct sh_err *e);

/* The seconds that the model predicts for a point. */
double sh_sim_point_seconds(struct sh_sim_cost *c, const struct sh_sim_point *p);

#endif
