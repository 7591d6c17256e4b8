/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as printed results. */
#ifndef SH_CLI_PLAN_SHOW_H
#define SH_CLI_PLAN_SHOW_H

#include "src/base/out.h"
#include "src/app/plan/plan_file.h"

/* Model and policy, the budgets per layer and head, the total, and the evidence. */
void sh_plan_show(struct sh_out *o, const struct sh_plan *p);

#endif
