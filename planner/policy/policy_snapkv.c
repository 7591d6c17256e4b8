/* SPDX-License-Identifier: Apache-2.0 */
/* SnapKV (Li et al. 2024): the last w = `recent` rows vote. A token's score is what it received from them, smoothed
 * over `kernel` neighbouring positions of the text (tokens of the window excluded); the w newest tokens are never
 * evicted.
 *
 * The public code decides once, at the end of the prompt, and lets the cache grow. Here that is the first decision if
 * prefill > budget, and every later one follows the same rule with the last w rows of its own time. An evicted
 * neighbour counts as 0 in a mean, and not at all in a maximum. */
#include "planner/policy/last_rows.h"

enum knob { SINKS, RECENT, KERNEL, POOL };

struct state {
    struct sh_last_rows rows;
    struct sh_neighbours order;
    float *score;                       /* [capacity] */
};

static size_t window_of(const struct sh_policy_head *h)
{
    return h->knob[RECENT] > 1 ? (size_t)h->knob[RECENT] : 1;
}

/* The sum of the last rows can be taken when it is asked for. */
static const struct sh_array arrays[] = {
    SH_ARRAY(rows.sum, SH_PER_SLOT, 0),
    SH_ARRAY_ROWS(rows.at, SH_PER_SLOT, sizeof(float), window_of),
    SH_ARRAY(order.slot, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(order.pos, SH_SLOT_SCRATCH, 0),
    SH_ARRAY(score, SH_SLOT_SCRATCH, 0),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    sh_last_rows_add(&s->rows, c, t->row, (int)window_of(c->head));
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    const double *knob = c->head->knob;
    int end = t->t - (int)knob[RECENT];
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->score[i] = (float)s->rows.sum[i];
    sh_neighbours_pool(&s->order, c, s->score, end, (int)knob[KERNEL] | 1, (enum sh_pool)knob[POOL], scratch);
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
    [RECENT] = {"recent", 32, 0, 1 << 12, NULL, "rows that vote, and newest tokens, never evicted", 1},
    [KERNEL] = {"kernel", 5, 1, 255, NULL, "width of the smoothing in positions (rounded up to odd)", 1},
    [POOL] = {"pool", SH_POOL_MEAN, 0, SH_POOL_MAX, pools, "how scores are smoothed", 1},
    {0}};

const struct sh_policy sh_policy_snapkv = {
    .name = "snapkv",
    .summary = "drops tokens that got, with their neighbours, the least attention from the last queries",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = is_stack,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
