/* SPDX-License-Identifier: Apache-2.0 */
/* Key norm (Devoto et al. 2024): keys of small norm draw attention, so those of the largest norm leave.
 * The paper leaves the first two layers alone, which an allocator can do. */
#include <math.h>

#include "planner/policy/policy.h"

struct state {
    int newest;
    float worth[];                      /* [capacity] */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return (size_t)h->capacity * sizeof(float);
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->newest = slot;
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    const float *k = sh_cache_row(c, c->k, s->newest);
    float sum = 0;
    (void)t;
    for (int i = 0; i < c->d_head; i++)
        sum += k[i] * k[i];
    s->worth[s->newest] = -sqrtf(sum);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    sh_carry_words(c, ((struct state *)to)->worth, ((const struct state *)from)->worth);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)c;
    (void)t;
    (void)scratch;
    return s->worth;
}

static const struct sh_knob knobs[] = {
    SH_KNOB_SINKS(0),
    SH_KNOB_RECENT(0),
    {0}};

const struct sh_policy sh_policy_knorm = {
    .name = "knorm",
    .summary = "drops the keys of largest norm",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
