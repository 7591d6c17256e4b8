/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing leaves, whatever the budget says: the reference. kept_slots.c gives it room for every token. */
#include "planner/policy/policy.h"

static int keeps_all(const double *knob, int layer)
{
    (void)knob;
    (void)layer;
    return 1;
}

const struct sh_policy sh_policy_full = {
    .name = "full",
    .summary = "keeps every token",
    .keeps_all = keeps_all,
    .device = sh_policy_by_position,
};
