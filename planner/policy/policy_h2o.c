/* SPDX-License-Identifier: Apache-2.0 */
/* Heavy hitters (H2O, Zhang et al. 2023): the attention that a token has received so far. `sum` is the paper's; sums
 * favour old tokens, which more queries have seen: `mean` divides by the rows a token was in, `decay` forgets. */
#include "planner/policy/policy.h"
#include "src/base/clones.h"

enum knob { SINKS, RECENT, SCORE, DECAY };
enum score { SUM, MEAN, FADING };

struct state {
    float *received;                    /* [capacity] */
    float *mean;                        /* [capacity]; only with mean */
};

static size_t mean_rows(const struct sh_policy_head *h)
{
    return (int)h->knob[SCORE] == MEAN;
}

/* With mean: a position as well, which is the cache's own here. */
static const struct sh_array arrays[] = {
    SH_ARRAY(received, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY_ROWS(mean, SH_SLOT_SCRATCH, sizeof(int32_t), mean_rows),
    {0}};

SH_CLONES static void add(float *restrict sum, const float *restrict row, float decay, int n)
{
    for (int i = 0; i < n; i++)
        sum[i] = sum[i] * decay + row[i];
}

SH_CLONES static void divide(float *restrict mean, const float *restrict sum, const int *restrict pos, int t, int n)
{
    for (int i = 0; i < n; i++)
        mean[i] = sum[i] / (float)(t - pos[i]);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    const double *knob = c->head->knob;
    add(s->received, t->row, (int)knob[SCORE] == FADING ? (float)knob[DECAY] : 1, c->n_slot);
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)scratch;
    if (!s->mean)
        return s->received;
    divide(s->mean, s->received, c->pos, t->t, c->n_slot);
    return s->mean;
}

static const char *device(const double *knob, int n_token, struct sh_slots_policy *to)
{
    (void)n_token;
    to->rule = (int)knob[SCORE] == MEAN ? SH_SLOTS_MEAN : SH_SLOTS_SUM;
    to->decay = (int)knob[SCORE] == FADING ? (float)knob[DECAY] : 1;
    return NULL;
}

static const char *const scores[] = {"sum", "mean", "decay", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(0),
    [SCORE] = {"score", SUM, 0, FADING, scores, "attention received: its sum, mean over the rows seen, or decaying sum",
               1},
    [DECAY] = {"gamma", 0.99, 0, 1, NULL, "with decay: factor on past attention after each row", 0},
    {0}};

const struct sh_policy sh_policy_h2o = {
    .name = "h2o",
    .summary = "drops the token that received the least attention so far (heavy hitters stay)",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = sh_policy_always,
    .device = device,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
