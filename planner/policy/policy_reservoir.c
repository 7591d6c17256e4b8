/* SPDX-License-Identifier: Apache-2.0 */
/* A weighted reservoir (Efraimidis and Spirakis 2006): "important tokens are stored with a higher probability", as the
 * abstract of Scissorhands says. Each token draws one u in (0, 1), hashed from (seed, layer, head, token), and the
 * largest keys u^(1 / weight) stay. The weight falls with the rate of low scores: (rows seen + 1 - low rows) / (rows
 * seen + 1), over all rows since the token came, low as in Scissorhands. A new token has weight 1; no weight is ever
 * 0. */
#include <math.h>

#include "planner/policy/policy.h"
#include "src/base/clones.h"
#include "src/base/num.h"
#include "src/base/rng.h"

enum knob { SINKS, RECENT, THRESHOLD };
enum threshold { BY_CACHE, BY_ROW };

struct state {
    float *draw, *low;                  /* [capacity] ln u, low rows */
};

/* The draw is a hash, so it can be computed again at any time. */
static const struct sh_array arrays[] = {
    SH_ARRAY(draw, SH_PER_SLOT, 0),
    SH_ARRAY(low, SH_PER_SLOT, sizeof(uint16_t)),
    {0}};

SH_CLONES static void count(float *restrict low, const float *restrict row, float limit, int n)
{
    for (int i = 0; i < n; i++)
        low[i] += row[i] < limit ? 1.0f : 0.0f;
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int n = (int)c->head->knob[THRESHOLD] == BY_CACHE ? t->n_row : t->t + 1;
    s->draw[c->newest] = (float)log(sh_rng_uniform(sh_policy_draws(c->head), (uint64_t)t->t));
    count(s->low, t->row, sh_round_up(1.0 / n), c->n_slot);
}

/* The key's logarithm. */
static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    for (int i = 0; i < c->n_slot; i++) {
        float seen = (float)(t->t - c->pos[i]) + 1;
        scratch[i] = s->draw[i] * seen / (seen - s->low[i]);
    }
    return scratch;
}

/* A limit of 1/n_row is another one at every budget. */
static int is_stack(const double *knob)
{
    return (int)knob[THRESHOLD] == BY_ROW;
}

static const char *const thresholds[] = {"n", "i", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(10),
    [THRESHOLD] = {"threshold", BY_CACHE, 0, BY_ROW, thresholds, "low: below 1/n (n: cached tokens), 1/(i+1) (i: row)",
                   1},
    {0}};

const struct sh_policy sh_policy_reservoir = {
    .name = "reservoir",
    .summary = "keeps a random sample that favours tokens which are seldom unimportant",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = is_stack,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
