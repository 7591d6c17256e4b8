/* SPDX-License-Identifier: Apache-2.0 */
/* R-KV (Cai et al. 2025): lambda * attention - (1 - lambda) * redundancy.
 *
 * Attention: in each of the last w = `recent` rows, a token's share of what falls on tokens outside the w newest; the
 * mean over those rows, then the maximum over `kernel` neighbouring positions of the text. Redundancy: the softmax over
 * the cached tokens of the mean cosine of a key with the others; for each token, the newest one that is like it (cosine
 * > 0.5) is not counted. The w newest tokens are never evicted.
 *
 * The public code lets 128 tokens come on top of a budget of 128, then drops 128: drop=0.5 of a budget that is the
 * peak, as here. It takes the maximum over a group's logits and smooths over neighbours in the cache, which after the
 * first drop are not neighbours in the text. */
#include <math.h>

#include "planner/policy/last_rows.h"
#include "planner/policy/vectors.h"

enum knob { SINKS, RECENT, DROP, LAMBDA, KERNEL };

static const float like = 0.5f;

struct state {
    struct sh_last_rows rows;
    struct sh_neighbours order;
    float *scale, *share, *cosine, *sum;        /* [capacity] each, sum [d_head] */
};

static size_t window_of(const struct sh_policy_head *h)
{
    return h->knob[RECENT] > 1 ? (size_t)h->knob[RECENT] : 1;
}

/* What is not of the rows follows from the keys. */
static const struct sh_array arrays[] = {
    SH_ARRAY(rows.sum, SH_PER_SLOT, 0),
    SH_ARRAY_ROWS(rows.at, SH_PER_SLOT, sizeof(float), window_of),
    SH_ARRAY(scale, SH_PER_SLOT, 0),
    SH_ARRAY(order.slot, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(order.pos, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(share, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(cosine, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(sum, SH_CHANNEL_SCRATCH, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    s->scale[c->newest] = sh_key_scale(c, c->newest);
    sh_last_rows_add(&s->rows, c, t->row, (int)window_of(c->head));
}

/* Shares of tokens at positions < end, mean over the rows. */
static void take_shares(struct state *s, const struct sh_cache *c, int end)
{
    int window = (int)window_of(c->head), n = s->rows.n_row < window ? s->rows.n_row : window;
    for (int i = 0; i < c->n_slot; i++)
        s->share[i] = 0;
    for (int r = 0; r < n; r++) {
        const float *row = s->rows.at + (size_t)r * (size_t)c->head->capacity;
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
    return s->scale[a] * s->scale[b] * sh_dot(sh_cache_row(c, c->k, a), sh_cache_row(c, c->k, b), c->d_head);
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
        s->cosine[i] = s->scale[i] * sh_dot(s->sum, sh_cache_row(c, c->k, i), c->d_head) - own;
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

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    const double *knob = c->head->knob;
    float lambda = (float)knob[LAMBDA];
    int end = t->t - (int)knob[RECENT];
    take_shares(s, c, end);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->share[i];
    sh_neighbours_pool(&s->order, c, s->share, end, (int)knob[KERNEL] | 1, SH_POOL_MAX, scratch);
    take_redundancy(s, c);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = lambda * scratch[i] - (1 - lambda) * s->cosine[i];
    return scratch;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = {"recent", 8, 0, 1 << 12, NULL, "rows that count, and newest tokens, never evicted", 1},
    [DROP] = SH_KNOB_DROP(0.5),
    [LAMBDA] = {"lambda", 0.07, 0, 1, NULL, "weight of attention; the rest is that of redundancy", 0},
    [KERNEL] = {"kernel", 7, 1, 255, NULL, "neighbouring positions that share attention (rounded up to odd)", 1},
    {0}};

const struct sh_policy sh_policy_rkv = {
    .name = "r-kv",
    .summary = "drops tokens with little recent attention and with keys similar to others",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_KEYS,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
