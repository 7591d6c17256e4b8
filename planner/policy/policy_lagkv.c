/* SPDX-License-Identifier: Apache-2.0 */
/* LagKV (Liang et al. 2025): the text after the sinks is cut into lags of g tokens. A lag is judged when the next one
 * is complete: each channel of its keys is scaled to the next lag's range in that channel, a token's spread is the
 * deviation over its channels, and the softmax of the spreads within the lag is taken; the same for its values, and the
 * mean of the two. Within a lag the public code keeps the best (1 - r) * g; here the rank within the lag is the score
 * (0 the lowest), so that every judged lag loses equally. Tokens without a complete lag after them have no rank yet and
 * are evicted last, the oldest first: a budget below sinks + 2 g gives a window.
 *
 * A lag is judged from the tokens of both lags that are still cached: all of them unless the budget is that small. A
 * channel that does not vary in the next lag counts as 0. */
#include <math.h>

#include "planner/policy/policy.h"

enum knob { SINKS, RECENT, LAG };

struct state {
    float *score, *spread, *softmax;    /* [capacity] */
    float *least, *range;               /* [d_head]   */
};

static const struct sh_array arrays[] = {
    SH_ARRAY(score, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(spread, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(softmax, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(least, SH_CHANNEL_SCRATCH, 0),
    SH_ARRAY(range, SH_CHANNEL_SCRATCH, 0),
    {0}};

static int is_within(const struct sh_cache *c, int slot, int first, int n)
{
    return c->pos[slot] >= first && c->pos[slot] < first + n;
}

/* Of the channels over the cached tokens [first, first + n): the least value and the range. */
static void measure(const struct state *s, const struct sh_cache *c, const float *rows, int first, int n)
{
    float *least = s->least, *range = s->range;
    for (int k = 0; k < c->d_head; k++) {
        least[k] = INFINITY;
        range[k] = -INFINITY;
    }
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, n)) {
            const float *x = sh_cache_row(c, rows, i);
            for (int k = 0; k < c->d_head; k++) {
                least[k] = x[k] < least[k] ? x[k] : least[k];
                range[k] = x[k] > range[k] ? x[k] : range[k];
            }
        }
    for (int k = 0; k < c->d_head; k++)
        range[k] -= least[k];
}

/* Deviation over the channels, each scaled to its range. */
static float spread(const struct state *s, const float *x, int d)
{
    const float *least = s->least, *range = s->range;
    float mean = 0, squares = 0;
    for (int k = 0; k < d; k++) {
        float z = range[k] > 0 ? (x[k] - least[k]) / range[k] : 0, off = z - mean;
        mean += off / (float)(k + 1);
        squares += off * (z - mean);
    }
    return d > 1 ? sqrtf(squares / (float)(d - 1)) : 0;
}

/* The softmax of the spreads of the lag from `first` on is added to its tokens' scores. */
static void add_scores(const struct state *s, const struct sh_cache *c, const float *rows, int first, int lag)
{
    float *spreads = s->spread, most = -INFINITY;
    double sum = 0;
    measure(s, c, rows, first + lag, lag);
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, lag)) {
            spreads[i] = spread(s, sh_cache_row(c, rows, i), c->d_head);
            most = spreads[i] > most ? spreads[i] : most;
        }
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, lag))
            sum += (double)expf(spreads[i] - most);
    for (int i = 0; i < c->n_slot; i++)
        if (is_within(c, i, first, lag))
            s->softmax[i] += (float)((double)expf(spreads[i] - most) / sum);
}

static void rank(const struct state *s, const struct sh_cache *c, int first, int lag)
{
    const float *softmax = s->softmax;
    for (int i = 0; i < c->n_slot; i++) {
        if (!is_within(c, i, first, lag))
            continue;
        int below = 0;
        for (int k = 0; k < c->n_slot; k++)
            below += is_within(c, k, first, lag) &&
                     (softmax[k] < softmax[i] || (softmax[k] == softmax[i] && c->pos[k] < c->pos[i]));
        s->score[i] = (float)below;
    }
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int lag = (int)c->head->knob[LAG], first = t->t + 1 - 2 * lag;
    int after_sinks = t->t + 1 - (int)c->head->knob[SINKS];
    s->score[c->newest] = INFINITY;
    if (after_sinks < 2 * lag || after_sinks % lag)
        return;
    for (int i = 0; i < c->n_slot; i++)
        s->softmax[i] = 0;
    add_scores(s, c, c->k, first, lag);
    add_scores(s, c, c->v, first, lag);
    rank(s, c, first, lag);
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(4),
    [RECENT] = SH_KNOB_RECENT(0),
    [LAG] = {"lag", 128, 1, 1 << 20, NULL, "tokens scored together, by the range of the same number after them", 1},
    {0}};

const struct sh_policy sh_policy_lagkv = {
    .name = "lagkv",
    .summary = "drops tokens whose keys and values vary least, on the scale of the tokens after them",
    .knobs = knobs,
    .needs = SH_NEEDS_KEYS | SH_NEEDS_VALUES,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe,
};
