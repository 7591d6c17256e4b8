/* SPDX-License-Identifier: Apache-2.0 */
/* What shears plan prints. */
#ifndef SH_CLI_PLAN_SHOW_H
#define SH_CLI_PLAN_SHOW_H

#include "src/app/plan/live_plan.h"
#include "src/base/out.h"

/* Model, policy, allocator, budgets and their evidence. */
void sh_plan_show(struct sh_out *o, const struct sh_plan *p);

/* What was promised, then the plan and how it was found. file: where it was written; NULL: nowhere. */
void sh_live_plan_show(struct sh_out *o, const struct sh_live_plan *w, const char *file);

#endif
