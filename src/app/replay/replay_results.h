/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one policy under one budget, fresh from a replay or as the store kept them. */
#ifndef SH_APP_REPLAY_RESULTS_H
#define SH_APP_REPLAY_RESULTS_H

#include "src/app/replay/replay_store.h"

enum sh_replay_metric {
    SH_M_KEPT_MASS, SH_M_KEPT_MASS_NO_SINK, SH_M_PIVOTAL_RECALL, SH_M_OUTPUT_ERROR, SH_M_STABILITY, SH_M_MEAN_TOKENS,
    SH_M_LAYER_METRICS,                 /* the metrics before this one also exist for every layer */
    SH_M_KEPT_MASS_LOW = SH_M_LAYER_METRICS, SH_M_KEPT_MASS_HIGH,      /* bootstrap, 95 %         */
    SH_M_OUTPUT_ERROR_LOW, SH_M_OUTPUT_ERROR_HIGH,
    SH_M_PEAK_TOKENS, SH_M_BUDGET_TOKENS,
    SH_M_RESIDENT_BYTES,                /* bytes of all heads at their peak: 16-bit K and V, positions, policy state */
    SH_N_REPLAY_METRIC
};

struct sh_replay_row {
    const struct sh_policy_spec *spec;
    const struct sh_budget *budget;
    double all[SH_N_REPLAY_METRIC];     /* NaN: not defined                                       */
    double *layer;                      /* [n_layer][SH_M_LAYER_METRICS]                          */
    int first_layer, n_layer;
    int is_known;                       /* it was in the store before this command                */
};

/* Everything needed to repeat a row, as JSON, by which it is found in a store. Caller frees. */
char *sh_replay_row_settings(const struct sh_replay_row *row, const struct sh_replay_request *q, const char *allocator,
                             const struct sh_stored_run *runs, int n_run);

void sh_replay_row_fill(struct sh_replay_row *row, const struct sh_replay_result *r, int cell, uint64_t seed);

/* Mean height of a policy's curve of kept mass against budget (mean size in tokens), from row[n_budget]; budgets that
 * were left out are skipped. */
double sh_replay_rows_area(const struct sh_replay_row *row, int n_budget);

/* Fills the rows that are not known yet from the store, and marks them as known unless they are new. */
int sh_replay_rows_find(struct sh_replay_row *row, char *const *settings, int n, int are_new, struct sh_store *s,
                        struct sh_err *e);
int sh_replay_row_keep(const struct sh_replay_row *row, const char *settings, const struct sh_measured *on,
                       struct sh_store *s, struct sh_err *e);

#endif
