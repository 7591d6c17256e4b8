/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shears capacity as formats, budgets, windows and lists of settings; each combination is one question
 * to the planner. */
#ifndef SH_APP_CAPACITY_ASK_H
#define SH_APP_CAPACITY_ASK_H

#include "src/app/common/page_args.h"
#include <stddef.h>

#include "planner/capacity/capacity.h"
#include "planner/catalog/catalog.h"
#include "src/app/plan/plan_file.h"
#include "src/base/err.h"

enum { SH_CAPACITY_MOST = 32 };         /* settings in one list; letters of one in SH_CAPACITY_WORD */
enum { SH_CAPACITY_WORD = 1024 };

struct sh_capacity_args {
    const char *model, *gpu, *kv, *weights, *weights_attention, *tp, *budget, *windows, *gpus, *models, *draft;
    const char *plan, *db, *policy, *max_ppl, *min_recall, *measured_on;        /* where measured budgets come from */
    const char *plot_memory, *plot_frontier, *engine;
    struct sh_page_args paper;
    long long length, batch, pp, ep, page, headroom, prefix, state, chunk, sampled;
    long long lora, lora_rank;          /* adapters, 0: none; rank 0: 16                          */
    size_t memory, overhead;            /* memory 0: the board's                                  */
    double util, reserve, bandwidth, flops, price;      /* below 0: not given                      */
    int link, uneven;
    int policy_state;                   /* `state` is what the policy of a plan or a result stores */
    enum sh_plan_sizes sizes;           /* what the plan's budgets are widened to, for servers of fewer sizes */
    int has_plan;                       /* budgets come from a plan or a store, not from `budget` */
};

/* Comma-separated lists; empty items are refused. *n items, at most SH_CAPACITY_MOST. */
struct sh_capacity_words {
    int n;
    char at[SH_CAPACITY_MOST][SH_CAPACITY_WORD];
};
int sh_capacity_split(const char *option, const char *text, struct sh_capacity_words *out, struct sh_err *e);

/* The settings that do not depend on model or board. Refuses options that exclude each other. */
struct sh_capacity_settings {
    struct sh_capacity_words kv, budget, tp;    /* budget.n 0: none; tp "auto": found for each        */
    double util;
};
int sh_capacity_settings(const struct sh_capacity_args *a, struct sh_capacity_settings *out, struct sh_err *e);

/* "f16", or "q8_0+q4_0" for keys and values. */
int sh_capacity_kv(const char *word, struct sh_kv_rule *r, struct sh_err *e);

/* One question. *layers (for free()): numbers of the budget's layers. Options override the board's numbers. */
struct sh_capacity_question {
    const struct sh_kv_shape *shape, *draft;
    const struct sh_gpu *board;
    const char *kv, *budget;            /* budget NULL: none                                      */
    int tp;
};
int sh_capacity_ask_fill(const struct sh_capacity_args *a, const struct sh_capacity_settings *t,
                         const struct sh_capacity_question *q, struct sh_capacity_ask *out, uint64_t **layers,
                         struct sh_err *e);

/* The terms of a server's own memory on the board. */
struct sh_server sh_capacity_server(const struct sh_capacity_args *a, const struct sh_gpu *b);

/* Checks that tp divides the number of query heads, or of heads of a state layer: servers refuse other values. If it
 * does not, the error names the number of heads. */
int sh_capacity_divides(const struct sh_kv_shape *s, int tp, struct sh_err *e);
/* The number of query heads of a layer whose heads tp does not divide; 0: it divides those of all layers. */
int sh_capacity_odd_heads(const struct sh_kv_shape *s, int tp);

/* Bytes that a policy stores for each token that it keeps in a text of `length`, of a layer and KV head, next to the
 * key and value; rounded up. */
uint64_t sh_capacity_policy_state(const struct sh_policy_spec *p, const struct sh_kv_shape *s, double kept,
                                  uint64_t length);
/* The same of all heads of a plan. */
uint64_t sh_capacity_plan_state(const struct sh_plan *p, const struct sh_kv_shape *s, uint64_t length);
struct sh_quality_point;
/* With --policy-state, what the policy of a plan (NULL: none), or else of a measured budget (NULL: none), stores in a
 * text of `length` becomes part of the rule. */
void sh_capacity_add_state(const struct sh_capacity_args *a, const struct sh_plan *plan,
                           const struct sh_quality_point *measured, const struct sh_kv_shape *s, uint64_t length,
                           struct sh_kv_rule *rule);

/* ---- plans: capacity_plan.c ---- */

/* A plan's budgets as the rule of a cache: a layer's budget is the mean over the KV heads of the fullest rank, rounded
 * up, since that rank sets the capacity of its group. At other lengths than the plan's, heads keep the same shares
 * (sh_plan_tokens). The rule points to the plan. -1: a plan for another depth or number of KV heads. */
int sh_capacity_plan(const struct sh_plan *p, const char *path, const struct sh_kv_shape *s, int tp,
                     struct sh_kv_rule *r, struct sh_err *e);

/* "h2o: kept mass 0.91 (0.90 to 0.92) over 4 sequences of book.txt", or of the store if the text has no name; names the
 * model it was measured on if that is another one, and the length it was measured at if `length` is longer or 0, not
 * known. For free(). */
char *sh_capacity_plan_evidence(const struct sh_plan *p, const char *model, uint64_t length);

/* Do these name the same model? Compares the last parts of the paths, without case, "_" as "-". */
int sh_capacity_same_model(const char *a, const char *b);

#endif
