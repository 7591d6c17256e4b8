/* SPDX-License-Identifier: Apache-2.0 */
/* Observed attention (kvpress): a prompt token's worth is the mean attention that it received from the
 * prompt's rows that could see it. The public code decides once, at the end of the prompt, and lets
 * the cache grow. A fixed budget must go on deciding, so: the scores of the prompt's tokens stay what
 * they were at its end, and a token that came later has the mean over the rows since it came. Without
 * a prompt it would be h2o:score=mean. */
#include "planner/policy/policy.h"

struct state {
    int prefill;
    float sum[];                        /* [capacity] */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return (size_t)h->capacity * sizeof(float);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->prefill = h->prefill;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->sum[slot] = 0;
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int from = t->t < s->prefill ? 0 : s->prefill;
    for (int i = 0; i < c->n_slot; i++)
        s->sum[i] += c->pos[i] >= from ? t->row[i] : 0;
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    sh_carry_words(c, ((struct state *)to)->sum, ((const struct state *)from)->sum);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    for (int i = 0; i < c->n_slot; i++) {
        int end = c->pos[i] < s->prefill && s->prefill < t->t ? s->prefill : t->t;
        scratch[i] = s->sum[i] / (float)(end - c->pos[i]);
    }
    return scratch;
}

static const struct sh_knob knobs[] = {
    SH_KNOB_SINKS(0),
    SH_KNOB_RECENT(0),
    {0}};

const struct sh_policy sh_policy_observed = {
    .name = "observed",
    .summary = "mean attention that the prompt paid to its tokens, fixed when it has been read",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_PROMPT,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
