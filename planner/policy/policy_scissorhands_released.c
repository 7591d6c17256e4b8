/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of the code that the authors of Scissorhands released, which differs from their paper: a token is hit by a
 * row that gives it more than the row's 90th percentile, and stays if it has been hit in the last 100 rows or is among
 * the newest 10; layers outside 5..35 keep everything. That rule has no budget. As a baseline with one, the score is
 * the number of hits, so tokens that the code would drop (no hit) are evicted first. The code takes the percentile of
 * the full cache's row, and over the padded text, future zeros included (`of=text`: the n_token that will come at
 * most); here the row is that of the kept tokens. */
#include <math.h>

#include "planner/policy/last_rows.h"
#include "planner/policy/vectors.h"

enum knob { SINKS, RECENT, WINDOW, PERCENTILE, OF, FIRST_LAYER, LAST_LAYER };
enum of { ROW, TEXT };

struct state {
    struct sh_low_rows ring;
    float *sorted;                      /* [capacity] */
};

static int keeps_all(const double *knob, int layer)
{
    return layer < (int)knob[FIRST_LAYER] || layer > (int)knob[LAST_LAYER];
}

static int window_of(const struct sh_policy_head *h)
{
    return sh_low_rows_window(h->knob[WINDOW], h->n_token);
}

static size_t ring_rows(const struct sh_policy_head *h)
{
    return (size_t)window_of(h) + 1;
}

static const struct sh_array arrays[] = {
    SH_ARRAY(ring.low, SH_PER_SLOT, sizeof(uint16_t)),
    SH_ARRAY_ROWS(ring.bits, SH_PER_SLOT_BITS, sizeof(uint32_t), ring_rows),
    SH_ARRAY(sorted, SH_SLOT_SCRATCH, 0),
    {0}};

/* Element int(percentile * size) of the sorted row, which begins with zeros when the text is meant. */
static float limit_of(struct state *s, const struct sh_cache *c, const float *row)
{
    const double *knob = c->head->knob;
    int n = 0, size = (int)knob[OF] == TEXT ? c->head->n_token : c->n;
    int k = (int)(knob[PERCENTILE] * size) - (size - c->n);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            s->sorted[n++] = row[i];
    return k < 0 ? 0 : sh_quickselect(s->sorted, n, k);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    float limit = limit_of(s, c, t->row);
    sh_low_rows_add(&s->ring, c, t->row, window_of(c->head), nextafterf(limit, INFINITY));
}

/* Rows of the window that the token was in, less those that did not hit it. */
static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    int window = window_of(c->head);
    for (int i = 0; i < c->n_slot; i++) {
        int seen = t->t - c->pos[i];
        scratch[i] = (float)((seen < window ? seen : window) - s->ring.low[i]);
    }
    return scratch;
}

static const char *const all_of[] = {"row", "text", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(10),
    [WINDOW] = {"window", 100, 1, 1 << 20, NULL, "number of last rows that count", 1},
    [PERCENTILE] = {"percentile", 0.9, 0, 0.999, NULL, "share of a row that does not count as a hit", 0},
    [OF] = {"of", ROW, 0, TEXT, all_of, "the percentile is of the row, or of the row padded to the text's length", 1},
    [FIRST_LAYER] = {"first_layer", 5, 0, 1 << 20, NULL, "layers before it keep everything", 1},
    [LAST_LAYER] = {"last_layer", 35, 0, 1 << 20, NULL, "layers after it keep everything", 1},
    {0}};

const struct sh_policy sh_policy_scissorhands_released = {
    .name = "scissorhands-released",
    .summary = "drops the token with the fewest hits in recent rows (the rule of the authors' code)",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_LENGTH,
    .keeps_all = keeps_all,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
