/* SPDX-License-Identifier: Apache-2.0 */
/* Key norm (Devoto et al. 2024): keys of small norm draw attention, so those of the largest norm are evicted. The paper
 * does not compress the first two layers; an allocator can do the same. */
#include <math.h>

#include "planner/policy/policy.h"

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct sh_score_state *s = state;
    const float *k = sh_cache_row(c, c->k, c->newest);
    float sum = 0;
    (void)t;
    for (int i = 0; i < c->d_head; i++)
        sum += k[i] * k[i];
    s->score[c->newest] = -sqrtf(sum);
}

const struct sh_policy sh_policy_knorm = {
    .name = "knorm",
    .summary = "drops the token whose key has the largest norm",
    .knobs = sh_policy_protect_knobs,
    .needs = SH_NEEDS_KEYS,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct sh_score_state), .arrays = sh_score_kept,
    .observe = observe,
};
