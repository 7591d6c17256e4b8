/* SPDX-License-Identifier: Apache-2.0 */
/* Keyformer (Adnan et al. 2024): the sum of softmax((logit + Gumbel noise) / tau) over the rows that a token was in;
 * tau = 1 + heat * step, step = rows since the end of the prompt, 0 within it. The newest int(recents * budget) tokens
 * are never evicted.
 *
 * A logit is the logarithm of a score up to a constant of the row, and Gumbel noise is -ln of an exponential draw E:
 * the softmax is (score / E)^(1 / tau) over its sum. E is hashed from (seed, layer, head, row, token). With grouped KV
 * heads the score is the group's mean. The public code evicts every eighth step and sums the noise of its own cache;
 * here tokens are evicted when they must be. */
#include <math.h>

#include "planner/policy/policy.h"
#include "src/base/rng.h"

enum knob { SINKS, RECENTS, HEAT };

struct state {
    float *sum, *row;                   /* [capacity]; row: the one in hand */
};

static const struct sh_array arrays[] = {
    SH_ARRAY(sum, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(row, SH_SLOT_SCRATCH, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    uint64_t key = sh_rng(sh_policy_draws(c->head), (uint64_t)t->t);
    int step = t->t < c->head->prefill ? 0 : t->t + 1 - c->head->prefill;
    double power = 1 / (1 + c->head->knob[HEAT] * step), sum = 0;
    for (int i = 0; i < c->n_slot; i++) {
        double score = c->pos[i] < 0 ? 0 : (double)t->row[i];
        double draw = score > 0 ? -log(sh_rng_uniform(key, (uint64_t)c->pos[i])) : 1;
        s->row[i] = score > 0 ? (float)pow(score / draw, power) : 0;
        sum += (double)s->row[i];
    }
    for (int i = 0; sum > 0 && i < c->n_slot; i++)
        s->sum[i] += (float)((double)s->row[i] / sum);
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    int recents = (int)(c->head->knob[RECENTS] * c->head->budget);
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = c->pos[i] >= t->t - recents ? INFINITY : s->sum[i];
    return scratch;
}

static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENTS] = {"recents", 0.3, 0, 0.99, NULL, "share of the budget reserved for the newest tokens", 0},
    [HEAT] = {"heat", 0.01, 0, 1, NULL, "what each row adds to the temperature", 0},
    {0}};

const struct sh_policy sh_policy_keyformer = {
    .name = "keyformer",
    .summary = "drops by attention so far, as h2o, with Gumbel noise that helps tokens with little of it",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
