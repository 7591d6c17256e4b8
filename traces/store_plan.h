/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the trace store: kept beside the traces that they rest on. */
#ifndef SH_TRACES_STORE_PLAN_H
#define SH_TRACES_STORE_PLAN_H

#include "traces/store.h"

/* The plan of that name for the run's model, as JSON; one of the same name goes. */
int sh_store_keep_plan(struct sh_store *s, int run, const char *name, const char *json, struct sh_err *e);

#endif
