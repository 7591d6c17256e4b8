/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one policy under one budget on some texts, fresh from a reading or as the store kept
 * them. */
#ifndef SH_CLI_EVAL_ROWS_H
#define SH_CLI_EVAL_ROWS_H

#include "src/base/out.h"
#include "src/engine/eval.h"
#include "traces/store.h"

enum sh_eval_metric {
    SH_E_TOKENS, SH_E_NLL, SH_E_NLL_STDERR, SH_E_PPL, SH_E_PPL_STDERR, SH_E_CHANGE, SH_E_CHANGE_STDERR, SH_E_KL,
    SH_E_KL_STDERR, SH_E_SAME, SH_E_BUDGET_TOKENS, SH_E_PEAK_TOKENS, SH_E_KV_BYTES, SH_E_RATE, SH_N_EVAL_METRIC
};

struct sh_eval_scene {                /* what else decides the figures                          */
    uint64_t model, texts;              /* fingerprint, hash                                      */
    const char *dtype;
    int prefill, weight_bits;
    uint64_t seed;
};

struct sh_eval_result {
    const struct sh_eval_cell *cell;
    double at[SH_N_EVAL_METRIC];        /* NaN: not defined                                       */
    char *settings;                     /* everything needed to repeat it, as JSON; owned         */
    int is_known;                       /* found in the store                                     */
};

void sh_eval_result_name(struct sh_eval_result *r, const struct sh_eval_scene *c);    /* fills settings */
void sh_eval_result_fill(struct sh_eval_result *r, const struct sh_eval_sums *s);
void sh_eval_results_free(struct sh_eval_result *r, int n);

/* Results whose settings the store has are filled and marked as known. */
int sh_eval_results_find(struct sh_eval_result *r, int n, struct sh_store *s, struct sh_err *e);
int sh_eval_result_keep(const struct sh_eval_result *r, struct sh_store *s, struct sh_err *e);

/* An item of "results". */
void sh_eval_result_write(const struct sh_eval_result *r, struct sh_out *o);

#endif
