/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of the calculator, and the row that is kept of it. */
#ifndef SH_APP_CAPACITY_ROW_H
#define SH_APP_CAPACITY_ROW_H

#include "planner/capacity/capacity_server.h"
#include "planner/catalog/gpu.h"

struct sh_quality_point;                /* capacity_quality.h */
struct sh_capacity_ask;                 /* capacity_ask.h */

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
    double room_low, room_high;         /* what a server's own terms leave of the room             */
    uint64_t batch_low, batch_high;
};

/* What a row is made of. */
struct sh_capacity_answer {
    const struct sh_capacity_ask *ask;
    const struct sh_gpu *board;
    const char *budget, *kv, *evidence;
    const struct sh_quality_point *measured;
    double price;                       /* of one GPU and hour; below 0: not given                 */
    struct sh_server server;
    struct sh_capacity c;
};

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out);

#endif
