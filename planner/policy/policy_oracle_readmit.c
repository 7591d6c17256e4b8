/* SPDX-License-Identifier: Apache-2.0 */
/* In every row the tokens that serve that row best, as if what has left could come back: what no eviction
 * policy can beat. It keeps nothing from row to row, so it is no policy of kept_slots.h; replay_bound.c works
 * it out. */
#include "planner/policy/policy.h"

const struct sh_policy sh_policy_oracle_readmit = {
    .name = "oracle-readmit",
    .summary = "a bound: in every row the best tokens, as if they could come back",
    .needs = SH_NEEDS_SCORES | SH_NEEDS_FUTURE | SH_IS_BOUND,
};
