/* SPDX-License-Identifier: Apache-2.0 */
/* Value-aware token pruning (VATP, Guo et al. 2024): a token moves the output by its attention times
 * its value, so its worth is the attention received so far times |v|_1. The first token, whose value is
 * nearly zero because it is the sink, is held by the knob `sinks`. */
#include <math.h>

#include "planner/policy/policy.h"
#include "src/base/clones.h"

struct state {
    int capacity, newest;
    float at[];                         /* [capacity] received, [capacity] |v|_1 */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + 2 * (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return 2 * (size_t)h->capacity * sizeof(float);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->capacity = h->capacity;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->at[slot] = 0;
    s->newest = slot;
}

SH_CLONES static void add(float *restrict sum, const float *restrict row, int n)
{
    for (int i = 0; i < n; i++)
        sum[i] += row[i];
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    const float *v = sh_cache_row(c, c->v, s->newest);
    float norm = 0;
    for (int i = 0; i < c->d_head; i++)
        norm += fabsf(v[i]);
    s->at[s->capacity + s->newest] = norm;
    add(s->at, t->row, c->n_slot);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_carry_words(c, s->at, old->at);
    sh_carry_words(c, s->at + s->capacity, old->at + old->capacity);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)t;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->at[i] * s->at[s->capacity + i];
    return scratch;
}

static const struct sh_knob knobs[] = {
    SH_KNOB_SINKS(1),
    SH_KNOB_RECENT(0),
    {0}};

const struct sh_policy sh_policy_vatp = {
    .name = "vatp",
    .summary = "heavy hitters weighted by the size of their values",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_VALUES,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
