/* SPDX-License-Identifier: Apache-2.0 */
/* RoCo (EasyKV, Ren and Zhu 2024): mean and deviation of the attention that a token received while it was cached. The
 * int(ratio * budget) tokens of largest deviation are safe, protected ones counted first; of the others the one with
 * the smallest mean is evicted. When the cache is just full, the others are the `budget - recent window` candidates of
 * the public code. */
#include <math.h>

#include "planner/policy/policy.h"
#include "planner/policy/vectors.h"
#include "src/base/clones.h"

enum knob { SINKS, RECENT, RATIO };

struct state {
    float *mean, *squares;              /* [capacity]; squares: about the mean */
    float *spread, *scratch;            /* [capacity] */
};

static const struct sh_array arrays[] = {
    SH_ARRAY(mean, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(squares, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(spread, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(scratch, SH_SLOT_SCRATCH, 0),
    {0}};

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
    add(s->mean, s->squares, t->row, c->pos, t->t, c->n_slot);
}

/* The n-th smallest deviation, and the newest of its tokens that is among the n; the older come first. */
static float last_of(const float *spread, const struct sh_cache *c, int n, float *scratch, int *newest)
{
    int live = 0, below = 0, equal = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            scratch[live++] = spread[i];
    float last = sh_quickselect(scratch, live, n - 1);
    for (int i = 0; i < c->n_slot; i++) {
        below += c->pos[i] >= 0 && spread[i] < last;
        if (c->pos[i] >= 0 && spread[i] == last)
            scratch[equal++] = (float)c->pos[i];
    }
    *newest = equal > n - 1 - below ? (int)sh_quickselect(scratch, equal, n - 1 - below) : -1;
    return last;
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    const double *knob = c->head->knob;
    int safe = (int)(knob[RATIO] * c->head->budget), newest = -1;
    int recent = sh_knob_tokens(knob[RECENT], c->head->budget);
    float *spread = s->spread, last = -1;
    for (int i = 0; i < c->n_slot; i++) {
        int held = c->pos[i] < (int)knob[SINKS] || c->pos[i] >= t->t - recent;
        spread[i] = held ? INFINITY : sqrtf(s->squares[i] / (float)(t->t - c->pos[i]));
    }
    if (c->n > safe)
        last = last_of(spread, c, c->n - safe, s->scratch, &newest);
    for (int i = 0; i < c->n_slot; i++) {
        int is_candidate = spread[i] < last || (spread[i] == last && c->pos[i] <= newest);
        scratch[i] = is_candidate ? s->mean[i] : INFINITY;
    }
    return scratch;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(4),
    [RECENT] = SH_KNOB_RECENT(10),
    [RATIO] = {"ratio", 0.3, 0, 0.99, NULL, "share of the budget protected, for tokens with the largest deviation", 0},
    {0}};

const struct sh_policy sh_policy_roco = {
    .name = "roco",
    .summary = "drops the token that received least, of those with the steadiest attention",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
