/* SPDX-License-Identifier: Apache-2.0 */
/* A worth drawn once for each (seed, layer, head, token), so that replays agree: the floor that a
 * policy which looks at attention must clear. */
#include "planner/policy/policy.h"
#include "src/base/rng.h"

struct state {
    uint64_t key;
    float worth[];                      /* [capacity] */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    (void)h;
    return 0;                           /* a hash can be taken again whenever it is asked for */
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->key = sh_rng(h->seed, ((uint64_t)(unsigned)h->layer << 32) | (unsigned)h->head);
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    s->worth[slot] = (float)sh_rng_uniform(s->key, (uint64_t)t->t);
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

const struct sh_policy sh_policy_random = {
    .name = "random",
    .summary = "keeps tokens drawn at random, the same ones in every replay",
    .knobs = knobs,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .worth = worth,
};
