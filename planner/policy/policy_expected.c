/* SPDX-License-Identifier: Apache-2.0 */
/* Expected attention (Devoto et al. 2025): if queries are drawn from a normal distribution with mean m
 * and covariance C, the expectation of exp(q k / sqrt(d)) is exp(k m / sqrt(d) + k C k / (2 d)); times
 * |v|_2 it is what a key will add to the outputs. The worth is its logarithm.
 *
 * The public code takes m and C before rotary positions, of one query head and the prompt's end, and
 * averages the rotation over the next 512 positions. A policy sees queries as attention does, rotated:
 * here m and C are those of all queries so far, which averages over the past's rotations in the place of
 * the future's, and one distribution stands for the whole group. Attention's scale is taken to be
 * 1 / sqrt(d). Decisions begin at the end of the prompt. A token is scored when it comes, and all are
 * every `every` rows; when does not depend on what is kept. */
#include <math.h>
#include <string.h>

#include "planner/policy/key_units.h"
#include "planner/policy/policy.h"

enum knob { SINKS, RECENT, EVERY };

struct state {
    int capacity, d, prefill, every, newest;
    float n;                            /* queries so far */
    float at[];                         /* [capacity] worths, [d] mean, [d] difference, [d][d] covariance * n */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    size_t d = (size_t)h->d_head;
    return sizeof(struct state) + ((size_t)h->capacity + 2 * d + d * d) * sizeof(float);
}

/* The difference is only scratch. */
static size_t resident_bytes(const struct sh_policy_head *h)
{
    size_t d = (size_t)h->d_head;
    return ((size_t)h->capacity + d + d * d) * sizeof(float);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->capacity = h->capacity;
    s->d = h->d_head;
    s->prefill = h->prefill;
    s->every = (int)h->knob[EVERY];
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->newest = slot;
}

/* Welford's update, one query. */
static void learn(struct state *s, const float *q)
{
    float *mean = s->at + s->capacity, *off = mean + s->d, *squares = off + s->d;
    s->n += 1;
    for (int i = 0; i < s->d; i++) {
        off[i] = q[i] - mean[i];
        mean[i] += off[i] / s->n;
    }
    for (int i = 0; i < s->d; i++)
        for (int j = 0; j < s->d; j++)
            squares[i * s->d + j] += off[i] * (q[j] - mean[j]);
}

static float score(const struct state *s, const float *k, const float *v)
{
    const float *mean = s->at + s->capacity, *squares = mean + 2 * (size_t)s->d;
    float d = (float)s->d, spread = 0;
    for (int i = 0; i < s->d; i++)
        spread += k[i] * sh_key_dot(squares + (size_t)i * (size_t)s->d, k, s->d);
    return sh_key_dot(k, mean, s->d) / sqrtf(d) + spread / s->n / (2 * d) + 0.5f * logf(sh_key_dot(v, v, s->d));
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int row = t->t + 1 - s->prefill;
    for (int g = 0; g < t->n_query; g++)
        learn(s, t->q + (size_t)g * (size_t)s->d);
    if (row < 0)
        return;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0 && (row % s->every == 0 || i == s->newest))
            s->at[i] = score(s, sh_cache_row(c, c->k, i), sh_cache_row(c, c->v, i));
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    size_t d = (size_t)s->d;
    s->n = old->n;
    sh_carry_words(c, s->at, old->at);
    memcpy(s->at + s->capacity, old->at + old->capacity, (2 * d + d * d) * sizeof *s->at);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)c;
    (void)t;
    (void)scratch;
    return s->at;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(4),
    [RECENT] = SH_KNOB_RECENT(0),
    [EVERY] = {"every", 32, 1, 1 << 20, NULL, "rows between scoring all tokens anew", 1},
    {0}};

const struct sh_policy sh_policy_expected = {
    .name = "expected",
    .summary = "drops what queries like those so far are expected to attend to least",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS | SH_NEEDS_VALUES | SH_NEEDS_QUERIES,
    .is_stack = sh_policy_always,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
