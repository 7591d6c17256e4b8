/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the trace store, kept with the traces that they are derived from. */
#ifndef SH_TRACES_STORE_PLAN_H
#define SH_TRACES_STORE_PLAN_H

#include "traces/store.h"

/* Store the plan of that name, as JSON, for the run's model; it replaces one of the same name. */
int sh_store_keep_plan(struct sh_store *s, int run, const char *name, const char *json, struct sh_err *e);

#endif
