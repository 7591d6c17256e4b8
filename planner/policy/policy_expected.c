/* SPDX-License-Identifier: Apache-2.0 */
/* Expected attention (Devoto et al. 2025): if queries are drawn from a normal distribution with mean m and covariance
 * C, the expectation of exp(q k / sqrt(d)) is exp(k m / sqrt(d) + k C k / (2 d)); times |v|_2 it is what a key will add
 * to the outputs. The score is its logarithm.
 *
 * The public code takes m and C before rotary positions, from one query head and the prompt's end, and averages the
 * rotation over the next 512 positions. A policy sees rotated queries: here m and C are those of all queries so far,
 * which averages over past instead of future rotations, and one distribution serves the whole group. The scale of
 * attention is taken as 1 / sqrt(d). Decisions begin at the end of the prompt. A token is scored when it comes, and all
 * tokens every `every` rows, whatever is kept. */
#include <math.h>

#include "planner/policy/vectors.h"

enum knob { SINKS, RECENT, EVERY };

struct state {
    float n;                            /* queries so far */
    float *score;                       /* [capacity] */
    float *mean, *off, *squares;        /* [d_head], [d_head], [d_head, d_head] covariance * n */
};

static size_t d_head(const struct sh_policy_head *h)
{
    return (size_t)h->d_head;
}

static const struct sh_array arrays[] = {
    SH_ARRAY(score, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(mean, SH_PER_CHANNEL, sizeof(float)),
    SH_ARRAY(off, SH_CHANNEL_SCRATCH, 0),
    SH_ARRAY_ROWS(squares, SH_PER_CHANNEL, sizeof(float), d_head),
    {0}};

/* Welford's update, one query. */
static void learn(struct state *s, const float *q, int d)
{
    float *mean = s->mean, *off = s->off;
    s->n += 1;
    for (int i = 0; i < d; i++) {
        off[i] = q[i] - mean[i];
        mean[i] += off[i] / s->n;
    }
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++)
            s->squares[i * d + j] += off[i] * (q[j] - mean[j]);
}

static float score(const struct state *s, const float *k, const float *v, int n)
{
    float d = (float)n, spread = 0;
    for (int i = 0; i < n; i++)
        spread += k[i] * sh_dot(s->squares + (size_t)i * (size_t)n, k, n);
    return sh_dot(k, s->mean, n) / sqrtf(d) + spread / s->n / (2 * d) + 0.5f * logf(sh_dot(v, v, n));
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int d = c->d_head, row = t->t + 1 - c->head->prefill, every = (int)c->head->knob[EVERY];
    for (int g = 0; g < t->n_query; g++)
        learn(s, t->q + (size_t)g * (size_t)d, d);
    if (row < 0)
        return;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0 && (row % every == 0 || i == c->newest))
            s->score[i] = score(s, sh_cache_row(c, c->k, i), sh_cache_row(c, c->v, i), d);
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(4),
    [RECENT] = SH_KNOB_RECENT(0),
    [EVERY] = {"every", 32, 1, 1 << 20, NULL, "rows after which all tokens are scored again", 1},
    {0}};

const struct sh_policy sh_policy_expected = {
    .name = "expected",
    .summary = "drops the token that queries like the past ones are expected to attend to least",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS | SH_NEEDS_VALUES | SH_NEEDS_QUERIES,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe,
};
