/* SPDX-License-Identifier: Apache-2.0 */
/* SnapKV (Li et al. 2024): the last w = `recent` rows vote. A token's worth is what it received from
 * them, smoothed over `kernel` neighbouring positions of the text (tokens of the window have no part in
 * it); the w newest tokens never leave.
 *
 * The public code decides once, at the end of the prompt, and lets the cache grow. Here that decision
 * is the first one when prefill > budget, and every later one follows the same rule with the last w
 * rows of its own time. A neighbour that has left counts as 0 in a mean, and not at all in a maximum. */
#include "planner/policy/last_rows.h"
#include "planner/policy/neighbours.h"

enum knob { SINKS, RECENT, KERNEL, POOL };

struct state {
    struct sh_last_rows rows;
    struct sh_neighbours order;
    float *score;                       /* [capacity] */
    int recent, kernel;
    enum sh_pool pool;
};

static int window_of(const struct sh_policy_head *h)
{
    return h->knob[RECENT] > 1 ? (int)h->knob[RECENT] : 1;
}

static size_t state_bytes(const struct sh_policy_head *h)
{
    return sizeof(struct state) + sh_last_rows_bytes(h->capacity, window_of(h)) + sh_neighbours_bytes(h->capacity) +
           (size_t)h->capacity * sizeof(float);
}

/* The rows; the sum of the last ones can be taken when it is asked for. */
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
    s->score = (float *)(at + sh_neighbours_bytes(h->capacity));
    s->recent = (int)h->knob[RECENT];
    s->kernel = (int)h->knob[KERNEL] | 1;
    s->pool = h->knob[POOL] > 0 ? SH_POOL_MAX : SH_POOL_MEAN;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)t;
    sh_last_rows_admit(&s->rows, slot);
    sh_neighbours_admit(&s->order, c, slot);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    sh_last_rows_add(&s->rows, t->row, c->n_slot);
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    sh_last_rows_carry(&s->rows, &old->rows, c);
    sh_neighbours_carry(&s->order, &old->order, c);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->score[i] = (float)s->rows.sum[i];
    sh_neighbours_pool(&s->order, c, s->score, t->t - s->recent, s->kernel, s->pool, scratch);
    return scratch;
}

/* A neighbour's mass counts only while it is cached; without neighbours nothing else matters. */
static int is_stack(const double *knob)
{
    return (int)knob[KERNEL] == 1;
}

static const char *const pools[] = {"mean", "max", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = {"recent", 32, 0, 1 << 12, NULL, "rows that vote, and newest tokens that never leave", 1},
    [KERNEL] = {"kernel", 5, 1, 255, NULL, "neighbouring positions that are smoothed over (rounded up to odd)", 1},
    [POOL] = {"pool", SH_POOL_MEAN, 0, SH_POOL_MAX, pools, "how they are", 1},
    {0}};

const struct sh_policy sh_policy_snapkv = {
    .name = "snapkv",
    .summary = "drops what the last queries cared for least, together with its neighbours",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = is_stack,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
