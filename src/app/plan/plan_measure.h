/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan's budgets cost on a trace: replayed, and written down in the plan as evidence. */
#ifndef SH_APP_PLAN_MEASURE_H
#define SH_APP_PLAN_MEASURE_H

#include "src/app/plan/plan_file.h"
#include "src/app/replay/replay_store.h"

/* The model of a run. */
void sh_plan_name(struct sh_plan *p, const struct sh_stored_run *run);

/* A figure that was measured on the runs of a store; its interval is not known yet. At most SH_PLAN_EVIDENCE. */
struct sh_plan_evidence *sh_plan_add_evidence(struct sh_plan *p, const char *metric, double value, int sequences,
                                              long long tokens, int run, const char *store);

/* Replay the plan's policy, prefill and budgets (sh_plan_tokens); q says which run, threads, seed and every
 * how many rows the output error is taken. Its figures are added to the evidence. */
int sh_plan_measure(struct sh_plan *p, const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e);

#endif
