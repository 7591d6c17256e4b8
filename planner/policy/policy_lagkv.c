/* SPDX-License-Identifier: Apache-2.0 */
/* LagKV (Liang et al. 2025): behind the sinks the text is cut into lags of g tokens. A lag is judged when
 * the next one is complete: each channel of its keys is scaled to the next lag's range in that channel,
 * a token's spread is the deviation over its channels, the score the softmax of the spreads within the
 * lag; the same for its values, and the mean of the two. Within a lag the public code keeps the best
 * (1 - r) * g; here the rank within the lag is the worth (0 the lowest), so that every lag judged loses
 * alike. Tokens that no complete lag follows have no rank yet and leave only when nothing else is left,
 * the oldest first: a budget below sinks + 2 g makes a window of it.
 *
 * A lag is judged from what of it and of the next one is cached then, which is all of them unless the
 * budget is that small. A channel that does not vary in the next lag counts as 0. */
#include <math.h>

#include "planner/policy/policy.h"

enum knob { SINKS, RECENT, LAG };

struct state {
    int capacity, d, sinks, lag;
    float at[];                         /* [capacity] each: worths, spreads, scores; [d] each: least, range */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + (3 * (size_t)h->capacity + 2 * (size_t)h->d_head) * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return (size_t)h->capacity * sizeof(float);         /* the worths; the rest is scratch */
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->capacity = h->capacity;
    s->d = h->d_head;
    s->sinks = (int)h->knob[SINKS];
    s->lag = (int)h->knob[LAG];
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->at[slot] = INFINITY;
}

static int is_within(const struct sh_cache *c, int slot, int first, int n)
{
    return c->pos[slot] >= first && c->pos[slot] < first + n;
}

/* Of the channels over the cached tokens [first, first + n): the least value and the range. */
static void measure(struct state *s, const struct sh_cache *c, const float *rows, int first, int n)
{
    float *least = s->at + 3 * (size_t)s->capacity, *range = least + s->d;
    for (int k = 0; k < s->d; k++) {
        least[k] = INFINITY;
        range[k] = -INFINITY;
    }
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, n)) {
            const float *x = sh_cache_row(c, rows, i);
            for (int k = 0; k < s->d; k++) {
                least[k] = x[k] < least[k] ? x[k] : least[k];
                range[k] = x[k] > range[k] ? x[k] : range[k];
            }
        }
    for (int k = 0; k < s->d; k++)
        range[k] -= least[k];
}

/* Deviation over the channels, each scaled to its range. */
static float spread(const struct state *s, const float *x)
{
    const float *least = s->at + 3 * (size_t)s->capacity, *range = least + s->d;
    float mean = 0, squares = 0;
    for (int k = 0; k < s->d; k++) {
        float z = range[k] > 0 ? (x[k] - least[k]) / range[k] : 0, off = z - mean;
        mean += off / (float)(k + 1);
        squares += off * (z - mean);
    }
    return s->d > 1 ? sqrtf(squares / (float)(s->d - 1)) : 0;
}

/* The softmax of the spreads of the lag from `first` on is added to its tokens' scores. */
static void add_scores(struct state *s, const struct sh_cache *c, const float *rows, int first)
{
    float *spreads = s->at + s->capacity, *scores = spreads + s->capacity, most = -INFINITY;
    double sum = 0;
    measure(s, c, rows, first + s->lag, s->lag);
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, s->lag)) {
            spreads[i] = spread(s, sh_cache_row(c, rows, i));
            most = spreads[i] > most ? spreads[i] : most;
        }
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, s->lag))
            sum += (double)expf(spreads[i] - most);
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, s->lag))
            scores[i] += (float)((double)expf(spreads[i] - most) / sum);
}

static void rank(struct state *s, const struct sh_cache *c, int first)
{
    const float *scores = s->at + 2 * (size_t)s->capacity;
    for (int i = 0; i < c->n_slot; i++) {
        if (!is_within(c, i, first, s->lag))
            continue;
        int below = 0;
        for (int k = 0; k < c->n_slot; k++)
            below += is_within(c, k, first, s->lag) &&
                     (scores[k] < scores[i] || (scores[k] == scores[i] && c->pos[k] < c->pos[i]));
        s->at[i] = (float)below;
    }
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int behind = t->t + 1 - s->sinks, first = t->t + 1 - 2 * s->lag;
    if (behind < 2 * s->lag || behind % s->lag)
        return;
    for (int i = 0; i < c->n_slot; i++)
        s->at[2 * (size_t)s->capacity + (size_t)i] = 0;
    add_scores(s, c, c->k, first);
    add_scores(s, c, c->v, first);
    rank(s, c, first);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_carry_words(c, s->at, old->at);
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
    [LAG] = {"lag", 128, 1, 1 << 20, NULL, "tokens that are judged together, by the range of as many that follow", 1},
    {0}};

const struct sh_policy sh_policy_lagkv = {
    .name = "lagkv",
    .summary = "drops keys and values that vary least in terms of what follows them",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS | SH_NEEDS_VALUES,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
