/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shears capacity, parsed into formats, budgets, windows and lists of settings; every combination is
 * one question to the planner. */
#ifndef SH_APP_CAPACITY_ASK_H
#define SH_APP_CAPACITY_ASK_H

#include <stddef.h>

#include "planner/capacity/capacity.h"
#include "planner/catalog/catalog.h"
#include "src/base/err.h"

enum { SH_CAPACITY_MOST = 32 };         /* settings in one list; letters of one in SH_CAPACITY_WORD */
enum { SH_CAPACITY_WORD = 1024 };

struct sh_capacity_args {
    const char *model, *gpu, *kv, *weights, *tp, *budget, *windows, *gpus, *models, *draft;
    const char *plan, *db, *policy, *max_ppl, *min_recall;      /* where budgets come from that were measured */
    const char *plot_memory, *plot_frontier;
    long long length, batch, pp, ep, page, headroom, prefix, state, chunk, sampled;
    size_t memory, overhead;            /* memory 0: the board's                                  */
    double util, reserve, bandwidth, flops, price;      /* below 0: not given                      */
    int link, uneven;
    int has_plan;                       /* budgets come from elsewhere, not from `budget`          */
};

/* Comma-separated lists; empty items are refused. *n items, at most SH_CAPACITY_MOST. */
struct sh_capacity_words {
    int n;
    char at[SH_CAPACITY_MOST][SH_CAPACITY_WORD];
};
int sh_capacity_split(const char *option, const char *text, struct sh_capacity_words *out, struct sh_err *e);

/* Everything that does not depend on model or board. Checks what excludes each other. */
struct sh_capacity_settings {
    struct sh_capacity_words kv, budget, tp;    /* budget.n 0: none; tp "auto": found for each        */
    double util;
};
int sh_capacity_settings(const struct sh_capacity_args *a, struct sh_capacity_settings *out, struct sh_err *e);

/* "f16", or "q8_0+q4_0" for keys and values. */
int sh_capacity_kv(const char *word, struct sh_kv_rule *r, struct sh_err *e);

/* "0.2", "4096", "4+2044", "64/32/...", "pyramid:96-32". A list's numbers go to *layers (for free()). */
int sh_capacity_budget(const char *word, const struct sh_kv_shape *s, struct sh_kv_rule *r, uint64_t **layers,
                       struct sh_err *e);

/* One question. `layers` as above. The board's numbers stand where no option gives others. */
struct sh_capacity_question {
    const struct sh_kv_shape *shape, *draft;
    const struct sh_gpu *board;
    const char *kv, *budget;            /* budget NULL: none                                      */
    int tp;
};
int sh_capacity_ask_fill(const struct sh_capacity_args *a, const struct sh_capacity_settings *t,
                         const struct sh_capacity_question *q, struct sh_capacity_ask *out, uint64_t **layers,
                         struct sh_err *e);

/* What the board says of runtimes. */
struct sh_server sh_capacity_server(const struct sh_capacity_args *a, const struct sh_gpu *b);

/* Query heads, or the heads of a state layer, must divide by tp: servers refuse other shapes. 0: they do; the
 * error names the count. */
int sh_capacity_divides(const struct sh_kv_shape *s, int tp, struct sh_err *e);

#endif
