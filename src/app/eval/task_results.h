/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one policy under one budget on a task, fresh or as the store kept them. */
#ifndef SH_APP_EVAL_TASK_RESULTS_H
#define SH_APP_EVAL_TASK_RESULTS_H

#include "src/base/out.h"
#include "src/engine/task_score.h"
#include "traces/store.h"

enum sh_task_metric {
    SH_T_ITEMS, SH_T_ACC, SH_T_STDERR, SH_T_ACC_NORM, SH_T_ACC_NORM_STDERR, SH_T_PPL, SH_T_SAME, SH_T_CHANGE,
    SH_T_BUDGET_TOKENS, SH_T_KV_BYTES, SH_T_RATE, SH_N_TASK_METRIC
};

struct sh_task_sums {                   /* over items                                             */
    long long items, right, right_norm, same, read, choices;
    double gold;                        /* log-likelihoods of the right choices                   */
    double change;                      /* |log-likelihood - the full cache's|, over choices      */
    double budget_tokens, seconds;
    size_t kv_bytes;                    /* of the largest item's choice                           */
    struct sh_eval_place place;
};

struct sh_task_row {
    struct sh_task_reader reader;
    double at[SH_N_TASK_METRIC];        /* NaN: not defined                                       */
    struct sh_eval_place place;         /* of this run's caches; not kept in stores               */
    char *settings;                     /* everything needed to repeat it, as JSON; owned         */
    int is_known;                       /* found in the store                                     */
};

/* full: the same item's scores over the full cache; NULL: these are they. */
void sh_task_sums_add(struct sh_task_sums *s, const struct sh_task *task, const struct sh_task_prompt *p,
                      const struct sh_task_score *score, const struct sh_task_score *full);

void sh_task_row_fill(struct sh_task_row *r, const struct sh_task *task, const struct sh_task_sums *s);

/* Rows whose settings the store has are filled and marked as known. */
int sh_task_rows_find(struct sh_task_row *r, int n, struct sh_store *s, struct sh_err *e);

/* An item of "results". with_device: as sh_eval_result_write's. */
void sh_task_row_write(const struct sh_task_row *r, const struct sh_task *task, int with_device, struct sh_out *o);

#endif
