/* SPDX-License-Identifier: Apache-2.0 */
/* TOVA (Oren et al. 2024): drops what the latest query cared for least. Per KV head; the paper ranks
 * the mean over all heads of a layer. Even the newest token may go unless `recent` holds it. */
#include <string.h>

#include "planner/policy/policy.h"

struct state {
    float *latest;                      /* [capacity] the row */
};

/* The row is at hand when the decision falls. */
static const struct sh_array arrays[] = {
    SH_ARRAY(latest, SH_PER_SLOT, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    memcpy(s->latest, t->row, (size_t)c->n_slot * sizeof *s->latest);
}

const struct sh_policy sh_policy_tova = {
    .name = "tova",
    .summary = "drops what the latest query attended to least",
    .knobs = sh_policy_protect_knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct state),
    .arrays = arrays,
    .observe = observe,
};
