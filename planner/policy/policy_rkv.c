/* SPDX-License-Identifier: Apache-2.0 */
/* R-KV (Cai et al. 2025): lambda * attention - (1 - lambda) * redundancy.
 *
 * Attention: of each of the last w = `recent` rows the share that a token has of what falls on tokens
 * outside the w newest; the mean over those rows, then the maximum over `kernel` neighbouring positions
 * of the text. Redundancy: the softmax over the cached tokens of the mean cosine of a key with the
 * others, where of each token the newest one that is like it (cosine > 0.5) is let off. The w newest
 * tokens never leave.
 *
 * The public code lets 128 tokens come on top of a budget of 128, then drops 128: with a budget that is
 * the peak, as here, drop=0.5. It takes the maximum over a group's logits and smooths over neighbours in
 * the cache, which after the first drop are not neighbours in the text. */
#include <math.h>

#include "planner/policy/key_units.h"
#include "planner/policy/last_rows.h"
#include "planner/policy/neighbours.h"

enum knob { SINKS, RECENT, DROP, LAMBDA, KERNEL };

static const float like = 0.5f;

struct state {
    struct sh_last_rows rows;
    struct sh_neighbours order;
    float *scale, *share, *cosine, *sum;        /* [capacity] each, sum [d_head] */
    float lambda;
    int recent, kernel, newest;
};

static int window_of(const struct sh_policy_head *h)
{
    return h->knob[RECENT] > 1 ? (int)h->knob[RECENT] : 1;
}

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + sh_last_rows_bytes(h->capacity, window_of(h)) + sh_neighbours_bytes(h->capacity) +
           (3 * (size_t)h->capacity + (size_t)h->d_head) * sizeof(float);
}

/* The rows; the rest follows from the keys. */
static size_t resident_bytes(const struct sh_policy_head *h)
{
    return (size_t)window_of(h) * (size_t)h->capacity * sizeof(float);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    char *at = (char *)(s + 1);
    sh_last_rows_place(&s->rows, at, h->capacity, window_of(h));
    at += sh_last_rows_bytes(h->capacity, window_of(h));
    sh_neighbours_place(&s->order, at, h->capacity);
    s->scale = (float *)(at + sh_neighbours_bytes(h->capacity));
    s->share = s->scale + h->capacity;
    s->cosine = s->share + h->capacity;
    s->sum = s->cosine + h->capacity;
    s->lambda = (float)h->knob[LAMBDA];
    s->recent = (int)h->knob[RECENT];
    s->kernel = (int)h->knob[KERNEL] | 1;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)t;
    s->newest = slot;
    sh_last_rows_admit(&s->rows, slot);
    sh_neighbours_admit(&s->order, c, slot);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    s->scale[s->newest] = sh_key_scale(c, s->newest);
    sh_last_rows_add(&s->rows, t->row, c->n_slot);
}

/* Shares of tokens at positions < end, mean over the rows. */
static void take_shares(struct state *s, const struct sh_cache *c, int end)
{
    int n = sh_last_rows_n(&s->rows);
    for (int i = 0; i < c->n_slot; i++)
        s->share[i] = 0;
    for (int r = 0; r < n; r++) {
        const float *row = sh_last_rows_row(&s->rows, r);
        double mass = 0;
        for (int i = 0; i < c->n_slot; i++)
            mass += c->pos[i] >= 0 && c->pos[i] < end ? (double)row[i] : 0;
        float scale = mass > 0 ? (float)(1 / (mass * n)) : 0;
        for (int i = 0; i < c->n_slot; i++)
            s->share[i] += row[i] * scale;
    }
}

static float cosine(const struct state *s, const struct sh_cache *c, int a, int b)
{
    return s->scale[a] * s->scale[b] * sh_key_dot(sh_cache_row(c, c->k, a), sh_cache_row(c, c->k, b), c->d_head);
}

/* Softmax over the cached tokens of the mean cosines. The order knows who has left. */
static void take_redundancy(struct state *s, const struct sh_cache *c)
{
    double sum = 0;
    sh_key_sum(c, s->scale, s->sum);
    for (int i = 0; i < c->n_slot; i++) {
        if (c->pos[i] < 0)
            continue;
        float own = s->scale[i] > 0 ? 1.0f : 0.0f;
        s->cosine[i] = s->scale[i] * sh_key_dot(s->sum, sh_cache_row(c, c->k, i), c->d_head) - own;
    }
    for (int i = 0; i < s->order.n; i++)
        for (int k = s->order.n - 1; k >= 0; k--) {
            float x = k == i ? 0 : cosine(s, c, s->order.slot[i], s->order.slot[k]);
            if (x > like) {
                s->cosine[s->order.slot[k]] -= x;
                break;
            }
        }
    for (int i = 0; i < c->n_slot; i++) {
        s->cosine[i] = c->pos[i] < 0 ? 0 : expf(s->cosine[i] / (float)c->n);
        sum += (double)s->cosine[i];
    }
    for (int i = 0; i < c->n_slot; i++)
        s->cosine[i] = (float)((double)s->cosine[i] / sum);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_last_rows_carry(&s->rows, &old->rows, c);
    sh_neighbours_carry(&s->order, &old->order, c);
    sh_carry_words(c, s->scale, old->scale);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    take_shares(s, c, t->t - s->recent);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->share[i];
    sh_neighbours_pool(&s->order, c, s->share, t->t - s->recent, s->kernel, SH_POOL_MAX, scratch);
    take_redundancy(s, c);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->lambda * scratch[i] - (1 - s->lambda) * s->cosine[i];
    return scratch;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = {"recent", 8, 0, 1 << 12, NULL, "rows that count, and newest tokens that never leave", 1},
    [DROP] = {"drop", 0.5, 0, 1 << 20, NULL, "tokens that leave at once; below 1: a fraction of the budget", 0},
    [LAMBDA] = {"lambda", 0.07, 0, 1, NULL, "weight of attention; the rest is redundancy's", 0},
    [KERNEL] = {"kernel", 7, 1, 255, NULL, "neighbouring positions that share attention (rounded up to odd)", 1},
    {0}};

const struct sh_policy sh_policy_rkv = {
    .name = "r-kv",
    .summary = "drops what got little attention lately and whose key others resemble",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_KEYS,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
