/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's budgets as the rule of a cache, and its measurements as a line. A layer's budget is the mean over the KV
 * heads of the fullest rank, rounded up, since that rank sets the capacity of its group. */
#ifndef SH_APP_CAPACITY_PLAN_H
#define SH_APP_CAPACITY_PLAN_H

#include "planner/capacity/kv_rule.h"
#include "src/app/plan/plan_file.h"

/* -1: a plan for another depth or number of KV heads. *layers for free(). */
int sh_capacity_plan(const struct sh_plan *p, const char *path, const struct sh_kv_shape *s, int tp,
                     struct sh_kv_rule *r, uint64_t **layers, struct sh_err *e);

/* "kept_mass 0.91 (0.90 to 0.92) over 4 sequences of store.db"; names the model it was measured on if that is another
 * one, and the length it was measured at if `length` is longer or 0, not known. For free(). */
char *sh_capacity_plan_evidence(const struct sh_plan *p, const char *model, uint64_t length);

/* Do these name the same model? Compares the last parts of the paths, without case, "_" as "-". */
int sh_capacity_same_model(const char *a, const char *b);

#endif
