/* SPDX-License-Identifier: Apache-2.0 */
/* A score drawn once for each (seed, layer, head, token), so that replays agree: a policy that looks at attention must
 * do better. */
#include "planner/policy/policy.h"
#include "src/base/rng.h"

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct sh_score_state *s = state;
    s->score[slot] = (float)sh_rng_uniform(sh_policy_draws(c->head), (uint64_t)t->t);
}

const struct sh_policy sh_policy_random = {
    .name = "random",
    .summary = "keeps tokens drawn at random, the same ones in every replay",
    .knobs = sh_policy_protect_knobs,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct sh_score_state), .arrays = sh_score_derived,
    .admit = admit,
};
