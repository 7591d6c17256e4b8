/* SPDX-License-Identifier: Apache-2.0 */
/* TOVA (Oren et al. 2024): drops what the latest query attended to least. Per KV head; the paper ranks the mean over
 * all heads of a layer. Even the newest token may be evicted unless `recent` protects it. */
#include <string.h>

#include "planner/policy/policy.h"

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct sh_score_state *s = state;
    memcpy(s->score, t->row, (size_t)c->n_slot * sizeof *s->score);
}

const struct sh_policy sh_policy_tova = {
    .name = "tova",
    .summary = "drops the token that the latest query attended to least",
    .knobs = sh_policy_protect_knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct sh_score_state), .arrays = sh_score_derived,
    .observe = observe,
};
