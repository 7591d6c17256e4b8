/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to every combination that capacity is asked about: models, boards, formats, budgets, groups of GPUs. */
#ifndef SH_APP_CAPACITY_STUDY_H
#define SH_APP_CAPACITY_STUDY_H

#include "src/app/capacity/capacity_ask.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_quality.h"
#include "src/app/common/serving.h"

extern const struct sh_capacity_args sh_capacity_defaults;

/* One answer, small enough to keep thousands; strings are not owned. */
struct sh_capacity_row {
    const char *model, *gpu, *budget, *kv;
    const char *evidence;               /* what the budget was measured to cost; NULL: nothing was */
    const struct sh_quality_point *measured;    /* the result that measured it; NULL: none, or a plan's */
    char weights[176];
    int tp, pp, ep, fits, max_pos, priced;
    int order;                          /* place in the order in which rows were asked for        */
    double sort;                        /* sort key: of two rows that both fit, the smaller comes first */
    uint64_t memory, limit, weights_bytes, overhead, room, shortfall, length, batch, max_batch, max_length;
    uint64_t token, sequence, prefix, states, lora, fixed, further, max_budget, with_prompt, uniform, scattered;
    uint64_t parameters, page;
    const char *unfit;
    double util, decode_s, decode_rate, prefill_s, prefill_rate, usd, cache_share;
    const char *bound, *prefill_bound;
    double room_low, room_high;         /* room that a server's own memory leaves                 */
    uint64_t batch_low, batch_high;
    const char *engine;                 /* engine of the expected times; NULL: none               */
    double expected_s, expected_rate, expected_first_s; /* time per token, tokens/s, time to the first token */
    double expected_rest_s;             /* seconds from shared prefix to first token; NaN: none, or not reused  */
    double error, first_error;          /* mean relative error for such servers; NaN: none was measured */
    int error_runs;
};

/* The question that a row answers. */
struct sh_capacity_answer {
    const struct sh_capacity_ask *ask;
    const struct sh_gpu *board;
    const char *budget, *kv, *evidence;
    const struct sh_quality_point *measured;
    double price;                       /* price of one GPU and hour; below 0: not given           */
    struct sh_server server;
    struct sh_capacity c;
    const struct sh_engine *engine;     /* NULL: none was named                                   */
    struct sh_clock clock;              /* times, with an engine                                  */
    uint32_t chunk;
    int enough_tp;                      /* the least that holds a single row that does not fit; 0: none */
};

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out);

/* Everything that is asked: models x boards x tp x formats x budgets. */
struct sh_capacity_study {
    const struct sh_capacity_args *args;
    struct sh_capacity_settings settings;
    struct sh_capacity_names names;
    struct sh_kv_shape *model;
    struct sh_gpu *board;
    struct sh_kv_shape draft;
    int n_model, n_board;
    struct sh_capacity_row *row;
    int n_row;
    struct sh_capacity_answer answer;   /* the last one, whole                                     */
    struct sh_capacity_ask ask;         /* its question                                           */
    uint64_t *layers;                   /* and what its budget points at                           */
    struct sh_plan plan;
    struct sh_engine engine;            /* set if args->engine is given                           */
    struct sh_quality_point *point;     /* measured budgets of the store                          */
    int n_point;
    char **evidence;                    /* lines that rows point at                                */
    int n_evidence;
};

/* Reads and answers; rows are in the order asked. The arguments must outlive it. Clear it in any case. */
int sh_capacity_study(struct sh_capacity_study *s, struct sh_capacity_args *a, struct sh_err *e);
void sh_capacity_study_sort(struct sh_capacity_study *s);
void sh_capacity_study_clear(struct sh_capacity_study *s);

#endif
