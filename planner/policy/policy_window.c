/* SPDX-License-Identifier: Apache-2.0 */
/* The newest tokens: what every other policy must beat. */
#include "planner/policy/policy.h"

const struct sh_policy sh_policy_window = {
    .name = "window",
    .summary = "keeps the newest tokens",
    .is_stack = sh_policy_always,
    .device = sh_policy_by_position,
};
