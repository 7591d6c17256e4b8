/* SPDX-License-Identifier: Apache-2.0 */
/* RoCo (EasyKV, Ren and Zhu 2024): mean and deviation of the attention that a token received while it
 * was cached. The int(ratio * budget) tokens of largest deviation are safe, protected ones counted
 * first; of the others the smallest mean leaves. With the cache just full, the others are the public
 * code's `budget - recent window` candidates. */
#include <math.h>

#include "planner/policy/kth.h"
#include "planner/policy/policy.h"
#include "src/base/clones.h"

enum knob { SINKS, RECENT, RATIO };

struct state {
    int capacity, safe, sinks, recent;
    float at[];                         /* [capacity] each: mean, squares about it, deviation, scratch */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + 4 * (size_t)h->capacity * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return 2 * (size_t)h->capacity * sizeof(float);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->capacity = h->capacity;
    s->safe = (int)(h->knob[RATIO] * h->budget);
    s->sinks = (int)h->knob[SINKS];
    s->recent = (int)h->knob[RECENT];
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->at[slot] = s->at[s->capacity + slot] = 0;
}

/* Welford's update: a difference of large sums would lose the deviation. */
SH_CLONES static void add(float *restrict mean, float *restrict squares, const float *restrict row,
                          const int *restrict pos, int t, int n)
{
    for (int i = 0; i < n; i++) {
        float off = row[i] - mean[i];
        mean[i] += off / (float)(t + 1 - pos[i]);
        squares[i] += off * (row[i] - mean[i]);
    }
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    add(s->at, s->at + s->capacity, t->row, c->pos, t->t, c->n_slot);
}

/* Of the deviations the n-th smallest, and of the tokens that have it the newest that is among the n;
 * the older come first. */
static float last_of(const float *spread, const struct sh_cache *c, int n, float *scratch, int *newest)
{
    int live = 0, below = 0, equal = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            scratch[live++] = spread[i];
    float last = sh_kth(scratch, live, n - 1);
    for (int i = 0; i < c->n_slot; i++) {
        below += c->pos[i] >= 0 && spread[i] < last;
        if (c->pos[i] >= 0 && spread[i] == last)
            scratch[equal++] = (float)c->pos[i];
    }
    *newest = equal > n - 1 - below ? (int)sh_kth(scratch, equal, n - 1 - below) : -1;
    return last;
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
    float *spread = s->at + 2 * (size_t)s->capacity, last = -1;
    int newest = -1;
    for (int i = 0; i < c->n_slot; i++) {
        int held = c->pos[i] < s->sinks || c->pos[i] >= t->t - s->recent;
        spread[i] = held ? INFINITY : sqrtf(s->at[s->capacity + i] / (float)(t->t - c->pos[i]));
    }
    if (c->n > s->safe)
        last = last_of(spread, c, c->n - s->safe, spread + s->capacity, &newest);
    for (int i = 0; i < c->n_slot; i++) {
        int is_candidate = spread[i] < last || (spread[i] == last && c->pos[i] <= newest);
        scratch[i] = is_candidate ? s->at[i] : INFINITY;
    }
    return scratch;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(4),
    [RECENT] = SH_KNOB_RECENT(10),
    [RATIO] = {"ratio", 0.3, 0, 0.99, NULL, "share of the budget that is safe for its large deviation", 0},
    {0}};

const struct sh_policy sh_policy_roco = {
    .name = "roco",
    .summary = "of the tokens that received attention most evenly, drops the one that received least",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
