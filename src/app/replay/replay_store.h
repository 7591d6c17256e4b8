/* SPDX-License-Identifier: Apache-2.0 */
/* The replay of a trace store: every finished layer of the chosen runs is read once, for all policies and budgets of
 * the request; KV heads run on threads. */
#ifndef SH_APP_REPLAY_STORE_H
#define SH_APP_REPLAY_STORE_H

#include <stdio.h>

#include "planner/policy/budget.h"
#include "planner/replay/replay_total.h"
#include "traces/store.h"

struct sh_replay_request {
    const struct sh_policy_spec *spec;
    int n_spec;
    const struct sh_budget *budget;
    int n_budget;
    enum sh_rows rows;
    int prefill, error_every;
    int leave_out_small;                /* 1: a budget that a policy's protected tokens fill is left out, 0: refused */
    uint64_t seed;
    int threads, quiet, run;            /* run 0: all                                             */
    /* Tokens of a head's budget; NULL: the same for every head. */
    int (*share_out)(void *to, int i_budget, int n_token, int layer, int head);
    void *share_to;
    FILE *dump;                         /* kept sets as JSON lines; NULL: not wanted              */
    int dump_every;
};

struct sh_replay_result {               /* cell: i_spec * n_budget + i_budget                     */
    struct sh_replay_total *total;
    int n_kv_head, d_head, first_layer, last_layer, n_sequence;
    double *budget_tokens;              /* [n_budget]: mean over the sequences                    */
    long long n_tokens;
};

/* Is everything there that the policies need, and is every budget larger than what they protect? */
int sh_replay_check(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e);

int sh_replay_run(const struct sh_replay_request *q, struct sh_store *s, struct sh_replay_result *out,
                  struct sh_err *e);
void sh_replay_result_free(struct sh_replay_result *r);

/* The same layer by layer, in any order and by any process; what is added up in order of number gives the bits of
 * sh_replay_run. The request must outlive it. */
struct sh_replay_walk;

struct sh_replay_walk *sh_replay_walk_open(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e);
void sh_replay_walk_close(struct sh_replay_walk *w);            /* NULL is fine */
int sh_replay_walk_n(const struct sh_replay_walk *w);           /* finished layers of sequences */
double sh_replay_walk_scores(const struct sh_replay_walk *w, int i);    /* scores of a layer, windows ignored */
int sh_replay_walk_sums(const struct sh_replay_walk *w);        /* sums of a layer: KV heads times cells */

/* sums [KV head][cell], zeros of heads that the layer does not have. */
int sh_replay_walk_layer(const struct sh_replay_walk *w, int i, struct sh_replay_sums *sums, struct sh_err *e);

/* A result without figures; then what each layer adds. */
void sh_replay_walk_begin(const struct sh_replay_walk *w, struct sh_replay_result *out);
void sh_replay_walk_add(const struct sh_replay_walk *w, int i, const struct sh_replay_sums *sums,
                        struct sh_replay_result *out);

#endif
