/* SPDX-License-Identifier: Apache-2.0 */
/* TOVA (Oren et al. 2024): drops what the latest query cared for least. Per KV head; the paper ranks
 * the mean over all heads of a layer. Even the newest token may go unless `recent` holds it. */
#include <string.h>

#include "planner/policy/policy.h"

static size_t state_bytes(const struct sh_policy_head *h)
{
    return (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    (void)h;
    return 0;                           /* the row is at hand when the decision falls */
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    memcpy(state, t->row, (size_t)c->n_slot * sizeof(float));
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    sh_carry_words(c, to, from);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    (void)c;
    (void)t;
    (void)scratch;
    return state;
}

static const struct sh_knob knobs[] = {
    SH_KNOB_SINKS(0),
    SH_KNOB_RECENT(0),
    {0}};

const struct sh_policy sh_policy_tova = {
    .name = "tova",
    .summary = "drops what the latest query attended to least",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .carry = carry,
    .observe = observe,
    .worth = worth,
};
