/* SPDX-License-Identifier: Apache-2.0 */
/* CAOTE (Goel et al. 2025): how far the output moves when a token leaves and the rest is renormalised is
 * exactly p / (1 - p) * |o - v|, with o = sum of p v. It wraps the scores of another policy: p are the
 * sums of H2O or the last row of TOVA, over their sum in the cache. `centre=mean` takes the mean value in
 * the place of o (FastCAOTE). Where several leave at once, each is judged as if it left alone. */
#include <math.h>

#include "planner/policy/policy.h"
#include "src/base/clones.h"

enum knob { SINKS, RECENT, BASE, CENTRE };
enum base { H2O, TOVA };
enum centre { OUTPUT, MEAN };

struct state {
    int base, centre, capacity;
    float at[];                         /* [capacity] scores, [d_head] the centre */
};

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + ((size_t)h->capacity + (size_t)h->d_head) * sizeof(float);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return (int)h->knob[BASE] == H2O ? (size_t)h->capacity * sizeof(float) : 0;
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->base = (int)h->knob[BASE];
    s->centre = (int)h->knob[CENTRE];
    s->capacity = h->capacity;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    s->at[slot] = 0;
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    for (int i = 0; i < c->n_slot; i++)
        s->at[i] = s->base == H2O ? s->at[i] + t->row[i] : t->row[i];
}

SH_CLONES static void add(float *restrict sum, const float *restrict x, float scale, int n)
{
    for (int i = 0; i < n; i++)
        sum[i] += x[i] * scale;
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

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_carry_words(c, s->at, old->at);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    float *centre = s->at + s->capacity;
    double sum = 0;
    (void)t;
    for (int i = 0; i < c->n_slot; i++)
        sum += c->pos[i] >= 0 ? (double)s->at[i] : 0;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = sum > 0 && c->pos[i] >= 0 ? (float)((double)s->at[i] / sum) : 0;
    for (int i = 0; i < c->d_head; i++)
        centre[i] = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            add(centre, sh_cache_row(c, c->v, i), s->centre == MEAN ? 1 / (float)c->n : scratch[i], c->d_head);
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
    [BASE] = {"base", H2O, 0, TOVA, bases, "whose scores are p: attention received so far, or from the latest row", 1},
    [CENTRE] = {"centre", OUTPUT, 0, MEAN, centres, "what values are compared with: the output, or their mean", 1},
    {0}};

const struct sh_policy sh_policy_caote = {
    .name = "caote",
    .summary = "drops what would move the attention output least",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_VALUES,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
