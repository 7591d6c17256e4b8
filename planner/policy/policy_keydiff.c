/* SPDX-License-Identifier: Apache-2.0 */
/* KeyDiff (Park et al. 2025): keys that point where most keys point are redundant. A token's worth is
 * -cos(k, anchor), the anchor being the mean of the cached keys at length 1; so it moves with the cache.
 * The paper decides in blocks (`drop`). */
#include "planner/policy/key_units.h"

struct state {
    int capacity, newest;
    float at[];                         /* [capacity] 1 / |k|, [d_head] the anchor */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + ((size_t)h->capacity + (size_t)h->d_head) * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    (void)h;
    return 0;                           /* all of it follows from the keys */
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
    s->newest = slot;
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)t;
    s->at[s->newest] = sh_key_scale(c, s->newest);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_carry_words(c, s->at, old->at);
}

/* The anchor's length is the same for all and left out. */
static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    float *anchor = s->at + s->capacity;
    (void)t;
    sh_key_sum(c, s->at, anchor);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = c->pos[i] < 0 ? 0 : -s->at[i] * sh_key_dot(anchor, sh_cache_row(c, c->k, i), c->d_head);
    return scratch;
}

static const struct sh_knob knobs[] = {
    SH_KNOB_SINKS(0),
    SH_KNOB_RECENT(0),
    {"drop", 1, 0, 1 << 20, NULL, "tokens that leave at once; below 1: a fraction of the budget", 0},
    {0}};

const struct sh_policy sh_policy_keydiff = {
    .name = "keydiff",
    .summary = "drops the keys that are most like the mean of all",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
