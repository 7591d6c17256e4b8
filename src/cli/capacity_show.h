/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of shears capacity: every one as a row of the contract's keys; a single one in full, each term
 * of its sum in bytes, GiB and GB. */
#ifndef SH_CLI_CAPACITY_SHOW_H
#define SH_CLI_CAPACITY_SHOW_H

#include "planner/capacity/capacity_server.h"
#include "planner/catalog/board.h"
#include "src/base/out.h"

enum { SH_CAPACITY_FRONTIER = 24 };

struct sh_quality_point;                /* capacity_quality.h */

/* One answer, small enough to keep thousands; strings are not owned. */
struct sh_capacity_row {
    const char *model, *gpu, *budget, *kv;
    const char *evidence;               /* what the budget was measured to cost; NULL: nothing was */
    const struct sh_quality_point *measured;    /* by which result; NULL: none, or a plan's        */
    char weights[64];
    int tp, pp, ep, fits, max_pos, priced;
    int order;                          /* in which it was asked                                  */
    double sort;                        /* of rows that fit alike the smaller comes first          */
    uint64_t memory, limit, weights_bytes, overhead, room, shortfall, length, batch, max_batch, max_length;
    uint64_t token, sequence, prefix, states, fixed, further, max_budget, beside_prompt, uniform, scattered;
    uint64_t parameters, page;
    const char *unfit;
    double util, decode_s, decode_rate, prefill_s, prefill_rate, usd, cache_share;
    const char *bound, *prefill_bound;
    double room_low, room_high;         /* what is left of the room behind a server's own terms    */
    uint64_t batch_low, batch_high;
};

/* What a row is made of. */
struct sh_capacity_answer {
    const struct sh_capacity_ask *ask;
    const struct sh_board *board;
    const char *budget, *kv, *evidence;
    const struct sh_quality_point *measured;
    double price;                       /* of one GPU and hour; below 0: not given                 */
    struct sh_server server;
    struct sh_capacity c;
};

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out);

/* JSON and CSV: the list "results". Text: one table. The caller ends the list, whose last item is open. */
void sh_capacity_show_rows(struct sh_out *o, const struct sh_capacity_row *rows, int n, int is_text);

/* A single answer as text; `row` is its row. */
void sh_capacity_show_one(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *row);

/* The lists terms, server, stages and frontier inside the open item (JSON). */
void sh_capacity_show_lists(struct sh_out *o, const struct sh_capacity_answer *a, int is_text);

/* --plot-memory: a bar for each row. --plot-frontier: batch, speed and, where it was measured, quality over the
 * budget. Rows without a budget are whole caches. */
int sh_capacity_plot_memory(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e);
int sh_capacity_plot_frontier(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e);

/* The frontier's data are handed to `draw`. */
struct sh_fig_data;
int sh_capacity_frontier(const struct sh_capacity_row *rows, int n,
                         int (*draw)(void *to, const struct sh_fig_data *d, struct sh_err *e), void *to,
                         struct sh_err *e);

/* Remarks that a number alone would hide. */
void sh_capacity_show_notes(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *row);

#endif
