/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction over recorded attention: the rows of one head of one sequence go once through many caches, one for each
 * (policy, budget) asked for. A cell's policy sees the row as a cache of its own would have made it, restricted to what
 * is kept and renormalised (or as recorded, with SH_ROWS_RECORDED).
 *
 * This is the reference trajectory: queries, keys and values are those of the uncompressed model. With renormalised
 * rows it is what a live cache does in the first layer, and close to it in later ones.
 *
 * A figure is a mean over rows, and in a row over the query heads of the group; where it is not defined (no pivotal
 * token, nothing but sinks and the token itself) it is left out. One thread for one struct sh_replay. */
#ifndef SH_PLANNER_REPLAY_H
#define SH_PLANNER_REPLAY_H

#include "planner/policy/kept_slots.h"

enum sh_rows { SH_ROWS_RENORMALISED, SH_ROWS_RECORDED };

enum { SH_REPLAY_SINKS = 4 };           /* what kept_mass_no_sink leaves out, with the token itself */

struct sh_replay_cell {
    const struct sh_policy_spec *spec;  /* NULL: left out, no figure has a row                    */
    int budget;
};

struct sh_replay_setup {
    int n_token, window, prefill;
    int layer, head, n_layer;           /* KV head                                                */
    int group;                          /* query heads that share it                              */
    enum sh_rows rows;
    const float *q;                     /* [group, n_token, d_head]; NULL when not recorded       */
    const float *k, *v;                 /* [n_token, d_head]; likewise                            */
    int d_head;
    uint64_t seed;
    const double *received;             /* [n_token]: all attention that each key gets, mean over the
                                         * group; NULL unless a policy needs the future           */
    int has_sinks;                      /* rows sum to less than 1                                */
    int error_rows;                     /* take the output error once in this many rows; 0: never */
};

enum sh_replay_figure {
    SH_KEPT_MASS,                       /* share of the full row that falls on kept tokens        */
    SH_KEPT_MASS_NO_SINK,               /* the same without the first SH_REPLAY_SINKS tokens and itself */
    SH_PIVOTAL_RECALL,                  /* share of the keys with score > 1/n that are kept       */
    SH_OUTPUT_ERROR,                    /* |o - o'| / |o|, mean over the group; needs v           */
    SH_STABILITY,                       /* Jaccard likeness of the kept sets of neighbouring steps */
    SH_OCCUPANCY,                       /* tokens kept, this one included                         */
    SH_N_REPLAY_FIGURE
};

struct sh_replay_sums {                 /* sums of one cell                                       */
    double sum[SH_N_REPLAY_FIGURE];
    long long rows[SH_N_REPLAY_FIGURE]; /* rows in which the figure was defined                   */
    int peak_tokens;
    size_t policy_bytes;                /* bytes of policy state, without the cache               */
};

struct sh_replay;

/* The cells' specs must outlive it. A policy's needs must be met: sh_replay_check. */
struct sh_replay *sh_replay_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell, int n_cell);
void sh_replay_free(struct sh_replay *r);               /* NULL is fine */

/* Called with what is kept when query t attends. */
typedef void sh_replay_watch(void *to, int cell, int t, const struct sh_cache *c);
void sh_replay_set_watch(struct sh_replay *r, sh_replay_watch *fn, void *to);

/* The rows of query t, one for each query head of the group: scores of the keys from first_key to t. Rows come in
 * order. -1: one does not sum to 1 (within 5 %, the most that log8 makes of it). */
int sh_replay_row(struct sh_replay *r, int t, int first_key, const float *const *row, struct sh_err *e);

const struct sh_replay_sums *sh_replay_sums(const struct sh_replay *r, int cell);

/* ---- every budget in one walk (replay_stack.c) ---- */

/* One walk over the rows of one head of one sequence, for every budget at once: of policies whose ranking of tokens,
 * from recorded rows, does not depend on what else is kept (sh_policy_is_stack). The policy runs once, over a cache
 * that keeps everything (slot = position); its scores order a list whose first B tokens are the kept set of budget B
 * (budget_list.h). Every figure that is a sum over the kept tokens then is a running sum down the list, and only the
 * share that each place gets must be added up: a row costs one pass over the list, whatever the number of budgets.
 *
 * Same rows, same order of things, same kept sets as sh_replay with SH_ROWS_RECORDED. Before `prefill` nothing leaves;
 * then all budgets fall to their size at once. In a windowed layer the list ends with the window: what is after it is
 * dead. The output error is not such a sum and is left out. */

struct sh_replay_stack;

/* 1: one pass gives all budgets. 0: they must be simulated one by one, because rows are renormalised over what is kept,
 * several tokens leave at once, all are kept, or a token's score depends on the other kept tokens. */
int sh_replay_stack_can(const struct sh_replay_setup *setup, const struct sh_policy_spec *spec);

/* Policies for which sh_replay_stack_can holds, on the same rows. The specs must outlive it, setup->error_rows is not
 * looked at; a policy that needs the future needs setup->received. */
struct sh_replay_stack *sh_replay_stack_new(const struct sh_replay_setup *setup,
                                            const struct sh_policy_spec *const *spec, int n_policy);
void sh_replay_stack_free(struct sh_replay_stack *s);           /* NULL is fine */

/* As sh_replay_row. */
int sh_replay_stack_row(struct sh_replay_stack *s, int t, int first_key, const float *const *row, struct sh_err *e);

/* The sums so far of policy i at a budget of sh_policy_least_budget or more: what sh_replay_sums has for such a cell,
 * but for the output error. */
void sh_replay_stack_sums(struct sh_replay_stack *s, int policy, int budget, struct sh_replay_sums *out);

/* ---- the bound "oracle-readmit" (replay_bound.c) ---- */

/* A bound that no eviction policy can beat. In every row the cache holds the row's own token and the budget - 1 others
 * that serve that row best, as if evicted tokens could return. For all budgets at once: a row is sorted, and the
 * figures of all budgets are running sums down the sorted row.
 *
 * Each figure has its own best tokens, so each is a bound by itself: of the kept mass, the keys with most mass; without
 * sinks, the same among the others; of pivotal recall, pivotal keys first. A group of query heads shares one set, the
 * best for their mean. Before `prefill` everything is kept. */

struct sh_replay_bound;

/* Of the setup: n_token, window, prefill, group. */
struct sh_replay_bound *sh_replay_bound_new(const struct sh_replay_setup *setup);
void sh_replay_bound_free(struct sh_replay_bound *b);           /* NULL is fine */

/* As sh_replay_row. */
int sh_replay_bound_row(struct sh_replay_bound *b, int t, int first_key, const float *const *row, struct sh_err *e);

/* The sums so far at a budget >= 1: the three figures that are sums over the kept tokens, occupancy and peak. Sets that
 * readmit have no stability; the output error is left out. */
void sh_replay_bound_sums(struct sh_replay_bound *b, int budget, struct sh_replay_sums *out);

/* ---- all that is asked for (replay_pass.c) ---- */

/* One head of one sequence through all policies and budgets of a request, each the cheapest way: budgets of a stack
 * policy on recorded rows in one walk, the bound in another, the rest cache by cache. What is asked for decides, never
 * the result: the figures are the same either way. */

struct sh_replay_pass;

/* cell[i * n_budget + b] is policy i under budget b; its spec is the same for all b, or NULL where the budget is to be
 * left out. `each_step`: kept sets are watched, or the output error is wanted, so that every cache is simulated. */
struct sh_replay_pass *sh_replay_pass_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell,
                                          int n_policy, int n_budget, int each_step);
void sh_replay_pass_free(struct sh_replay_pass *p);     /* NULL is fine */

void sh_replay_pass_set_watch(struct sh_replay_pass *p, sh_replay_watch *fn, void *to);
int sh_replay_pass_row(struct sh_replay_pass *p, int t, int first_key, const float *const *row, struct sh_err *e);
void sh_replay_pass_sums(struct sh_replay_pass *p, int cell, struct sh_replay_sums *out);

#endif
