/* SPDX-License-Identifier: Apache-2.0 */
/* KeyDiff (Park et al. 2025): keys that point where most keys point are redundant. A token's score is -cos(k, anchor),
 * where the anchor is the mean of the cached keys at length 1, so it changes with the cache. The paper decides in
 * blocks (`drop`). */
#include "planner/policy/vectors.h"

struct state {
    float *scale, *anchor;              /* [capacity] 1 / |k|, [d_head] */
};

/* All of it follows from the keys. */
static const struct sh_array arrays[] = {
    SH_ARRAY(scale, SH_PER_SLOT, 0),
    SH_ARRAY(anchor, SH_CHANNEL_SCRATCH, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)t;
    s->scale[c->newest] = sh_key_scale(c, c->newest);
}

/* The anchor's length is the same for all and left out. */
static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)t;
    sh_key_sum(c, s->scale, s->anchor);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = c->pos[i] < 0 ? 0 : -s->scale[i] * sh_dot(s->anchor, sh_cache_row(c, c->k, i), c->d_head);
    return scratch;
}

static const struct sh_knob knobs[] = {SH_KNOB_SINKS(0), SH_KNOB_RECENT(0), SH_KNOB_DROP(1), {0}};

const struct sh_policy sh_policy_keydiff = {
    .name = "keydiff",
    .summary = "drops the token whose key is most similar to the mean key",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
