/* SPDX-License-Identifier: Apache-2.0 */
/* CAOTE (Goel et al. 2025): when a token is evicted and the rest is renormalised, the output moves by exactly p / (1 -
 * p) * |o - v|, with o = sum of p v. It wraps the scores of another policy: p are the sums of H2O or the last row of
 * TOVA, over their sum in the cache. `centre=mean` uses the mean value instead of o (FastCAOTE). If several are evicted
 * at once, each is judged as if it were the only one. */
#include <math.h>
#include <string.h>

#include "planner/policy/vectors.h"
#include "src/base/clones.h"

enum knob { SINKS, RECENT, BASE, CENTRE };
enum base { H2O, TOVA };
enum centre { OUTPUT, MEAN };

struct state {
    float *received, *latest;           /* [capacity] scores: sums of H2O or the last row of TOVA, by base */
    float *centre;                      /* [d_head] */
};

static size_t received_rows(const struct sh_policy_head *h)
{
    return (int)h->knob[BASE] == H2O;
}

static size_t latest_rows(const struct sh_policy_head *h)
{
    return (int)h->knob[BASE] == TOVA;
}

static const struct sh_array arrays[] = {
    SH_ARRAY_ROWS(received, SH_PER_SLOT, sizeof(float), received_rows),
    SH_ARRAY_ROWS(latest, SH_PER_SLOT, 0, latest_rows),
    SH_ARRAY(centre, SH_CHANNEL_SCRATCH, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    if (s->latest)
        memcpy(s->latest, t->row, (size_t)c->n_slot * sizeof *s->latest);
    if (s->received)
        sh_add_scaled(s->received, t->row, 1, c->n_slot);
}

/* Eight partial sums, so that the order is the same however wide the registers are. */
SH_CLONES static float squared_distance(const float *a, const float *b, int n)
{
    float part[8] = {0}, sum = 0;
    int whole = n / 8 * 8;
    for (int i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; k++)
            part[k] += (a[i + k] - b[i + k]) * (a[i + k] - b[i + k]);
    for (int k = 0; k < 8; k++)
        sum += part[k];
    for (int i = whole; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    const float *given = s->received ? s->received : s->latest;
    float *centre = s->centre;
    int is_mean = (int)c->head->knob[CENTRE] == MEAN;
    double sum = 0;
    (void)t;
    for (int i = 0; i < c->n_slot; i++)
        sum += c->pos[i] >= 0 ? (double)given[i] : 0;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = sum > 0 && c->pos[i] >= 0 ? (float)((double)given[i] / sum) : 0;
    for (int i = 0; i < c->d_head; i++)
        centre[i] = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            sh_add_scaled(centre, sh_cache_row(c, c->v, i), is_mean ? 1 / (float)c->n : scratch[i], c->d_head);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0) {
            float p = scratch[i], off = sqrtf(squared_distance(centre, sh_cache_row(c, c->v, i), c->d_head));
            scratch[i] = p < 1 ? p / (1 - p) * off : INFINITY;
        }
    return scratch;
}

static const char *const bases[] = {"h2o", "tova", NULL};
static const char *const centres[] = {"output", "mean", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(0),
    [BASE] = {"base", H2O, 0, TOVA, bases, "policy that gives p: attention received so far, or from the latest row", 1},
    [CENTRE] = {"centre", OUTPUT, 0, MEAN, centres, "what values are compared with: the output or their mean", 1},
    {0}};

const struct sh_policy sh_policy_caote = {
    .name = "caote",
    .summary = "drops the token whose loss changes the output least",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_VALUES,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
