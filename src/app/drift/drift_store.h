/* SPDX-License-Identifier: Apache-2.0 */
/* A model reads a trace's tokens again with a live cache under a budget, and the same policy replays the recorded rows:
 * how similar are the sets of tokens that both keep? */
#ifndef SH_APP_DRIFT_STORE_H
#define SH_APP_DRIFT_STORE_H

#include "planner/replay/replay.h"
#include "src/app/common/live_session.h"
#include "src/engine/drift.h"
#include "traces/store.h"

struct sh_drift_request {
    const struct sh_live *live;         /* loaded                                                 */
    struct sh_store *store;
    const struct sh_stored_run *run;    /* [n_run], of the live model                             */
    int n_run;
    const struct sh_policy_spec *spec;
    const struct sh_budget *budget;     /* a share is one of the sequence                         */
    enum sh_rows rows;
    int most;                           /* sequences; 0: all                                      */
    void (*progress)(void *to, int tokens);
    void *progress_to;
};

/* Means are over heads and sequences, and over the steps from the first one that lacks a token in either run (before
 * it the sets are the same). */
struct sh_drift_layer {
    int layer, heads;                   /* heads of all sequences                                 */
    double sum, least;                  /* Jaccard indices: over steps, and the smallest          */
    long long steps;
    int same_first;                     /* heads whose first eviction is the same                 */
    int first_difference;               /* first step at which a head's sets differ; -1: none     */
    double *at;                         /* [n_step]: sum over heads, by step                      */
    int *n_at;                          /* [n_step]: heads that have the step                     */
};

struct sh_drift {
    int n_layer, n_step;                /* n_step: of the longest sequence                        */
    struct sh_drift_layer *layer;       /* [n_layer]                                              */
    double budget_tokens;               /* mean over sequences                                    */
    int n_sequence;
    struct sh_score_change change;      /* live rows compared with recorded ones, of all heads, at some steps */
};

int sh_drift_run(const struct sh_drift_request *q, struct sh_drift *out, struct sh_err *e);
void sh_drift_free(struct sh_drift *d);                 /* {0} is fine */

#endif
