/* SPDX-License-Identifier: Apache-2.0 */
/* The two bounds. */
#include "planner/policy/policy.h"

/* Drops the tokens that will receive the least attention in all later rows: a bound that no real cache can reach, since
 * it does not know these rows. Greedy, and in terms of the full rows; a strong reference, not proven to be the best. */
static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    (void)state;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = c->pos[i] < 0 ? 0 : t->future[c->pos[i]];
    return scratch;
}

const struct sh_policy sh_policy_oracle = {
    .name = "oracle",
    .summary = "a bound: drops the token that will receive the least attention",
    .knobs = sh_policy_protect_knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_FUTURE,
    .is_stack = sh_policy_always,
    .score = score,
};

/* In every row the tokens that serve that row best, as if evicted tokens could come back: what no eviction policy can
 * beat. It keeps nothing from row to row, so kept_slots.h cannot run it; replay_bound.c computes it. */
const struct sh_policy sh_policy_oracle_readmit = {
    .name = "oracle-readmit",
    .summary = "a bound: keeps each row's best tokens, as if evicted tokens could come back",
    .needs = SH_NEEDS_SCORES | SH_NEEDS_FUTURE | SH_IS_BOUND,
};
