/* SPDX-License-Identifier: Apache-2.0 */
/* Scissorhands (Liu et al. 2023), Algorithm 2 with the paper's slips repaired: for every token, count the rows among
 * the last `window` in which it got less than the threshold; the tokens with most such rows are evicted, `drop` at
 * once. Rows older than a token do not count for it.
 *
 * threshold: n: 1 / number of keys in the cache at that row; i: 1/(i + 1), i the row's position; t: 1/t for all rows of
 * the window, t the time of the decision, as the paper prints it.
 *
 * The counts come from a ring of the last rows (bits; with `t` the attention itself, since the threshold is not known
 * when the row is seen), or from two counters per slot: low rows of the current epoch of `window` rows and of the
 * previous one. After e rows of the current epoch, the estimate is current + previous * (1 - e / window). It is exact
 * until the first epoch ends and whenever one ends, and never off by more than window / 4: of the previous epoch's p
 * low rows between p - e and p are in its last window - e rows, and no more than window - e. With `t` the epochs use
 * the threshold of the row's own time. */
#include <string.h>

#include "planner/policy/last_rows.h"
#include "planner/policy/policy.h"
#include "src/base/clones.h"
#include "src/base/num.h"

enum knob { SINKS, RECENT, DROP, WINDOW, THRESHOLD, COUNTS, COUNTER };
enum threshold { BY_CACHE, BY_ROW, BY_TIME };
enum counts { RAW, RATE };
enum counter { RING, EPOCHS };

struct state {
    struct sh_low_rows ring;            /* low: within the window; epochs: of the running one. bits: unless they */
                                        /* are epochs or rows are kept */
    int32_t *before;                    /* [capacity]: low rows of the previous epoch; 0 with a ring */
    float *rows;                        /* [window, capacity] */
};

static int is_epochs(const double *knob)
{
    return (int)knob[COUNTER] == EPOCHS;
}

static int keeps_rows(const double *knob)
{
    return !is_epochs(knob) && (int)knob[THRESHOLD] == BY_TIME;
}

static int window_of(const struct sh_policy_head *h)
{
    return sh_low_rows_window(h->knob[WINDOW], h->n_token);
}

static size_t bits_rows(const struct sh_policy_head *h)
{
    return is_epochs(h->knob) || keeps_rows(h->knob) ? 0 : (size_t)window_of(h) + 1;
}

static size_t rows_rows(const struct sh_policy_head *h)
{
    return keeps_rows(h->knob) ? (size_t)window_of(h) : 0;
}

/* With a ring, `before` is not used, but a position is, which is the cache's own here. */
static const struct sh_array arrays[] = {
    SH_ARRAY(ring.low, SH_PER_SLOT, sizeof(uint16_t)),
    SH_ARRAY(before, SH_PER_SLOT, sizeof(uint16_t)),
    SH_ARRAY_ROWS(ring.bits, SH_PER_SLOT_BITS, sizeof(uint32_t), bits_rows),
    SH_ARRAY_ROWS(rows, SH_PER_SLOT_UNCLEARED, sizeof(float), rows_rows),
    {0}};

SH_CLONES static void count_epoch(int32_t *restrict low, const float *restrict row, const int *restrict pos,
                                  float limit, int n)
{
    for (int i = 0; i < n; i++)
        low[i] += (row[i] < limit) & (pos[i] >= 0);
}

static float limit_of(const struct sh_cache *c, const struct sh_step *t)
{
    int n = (int)c->head->knob[THRESHOLD] == BY_CACHE ? t->n_row : t->t + 1;
    return sh_round_up(1.0 / n);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    int window = window_of(c->head), capacity = c->head->capacity, n_row = s->ring.n_row;
    if (s->ring.bits) {
        sh_low_rows_add(&s->ring, c, t->row, window, limit_of(c, t));
        return;
    }
    if (is_epochs(c->head->knob)) {
        if (n_row && n_row % window == 0)
            for (int i = 0; i < capacity; i++) {
                s->before[i] = s->ring.low[i];
                s->ring.low[i] = 0;
            }
        count_epoch(s->ring.low, t->row, c->pos, limit_of(c, t), c->n_slot);
    } else {
        float *row = s->rows + (size_t)(n_row % window) * (size_t)capacity;
        memcpy(row, t->row, (size_t)c->n_slot * sizeof *row);
    }
    s->ring.n_row++;
}

SH_CLONES static void count_row(int32_t *restrict low, const float *restrict row, const int *restrict pos, float limit,
                                int number, int n)
{
    for (int i = 0; i < n; i++)
        low[i] += (row[i] < limit) & (pos[i] <= number);
}

static void count_by_time(struct state *s, const struct sh_cache *c, int t)
{
    int window = window_of(c->head), n_row = s->ring.n_row, first = n_row > window ? n_row - window : 0;
    for (int i = 0; i < c->n_slot; i++)
        s->ring.low[i] = 0;
    for (int r = first; r < n_row; r++) {
        const float *row = s->rows + (size_t)(r % window) * (size_t)c->head->capacity;
        count_row(s->ring.low, row, c->pos, sh_round_up(1.0 / t), r, c->n_slot);
    }
}

/* Rows of the window that a token has been in, 1 at least. */
static float rows_seen(const struct sh_cache *c, int slot, int t, int window)
{
    int seen = t - c->pos[slot];
    return (float)(seen < 1 ? 1 : seen < window ? seen : window);
}

SH_CLONES static void weigh(float *restrict to, const int32_t *restrict low, const int32_t *restrict before, float kept,
                            int n)
{
    for (int i = 0; i < n; i++)
        to[i] = -((float)low[i] + kept * (float)before[i]);
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    int window = window_of(c->head), n_row = s->ring.n_row;
    float kept = 0;
    if (s->rows)
        count_by_time(s, c, t->t);
    if (is_epochs(c->head->knob) && n_row > window)
        kept = 1 - (float)((n_row - 1) % window + 1) / (float)window;
    weigh(scratch, s->ring.low, s->before, kept, c->n_slot);
    for (int i = 0; (int)c->head->knob[COUNTS] == RATE && i < c->n_slot; i++)
        scratch[i] /= rows_seen(c, i, t->t, window);
    return scratch;
}

/* With one token at a time the schedule is the same for every budget; but 1/n_row is another threshold in each. */
static int is_stack(const double *knob)
{
    return knob[DROP] == 1 && (int)knob[THRESHOLD] != BY_CACHE;
}

static const char *device(const double *knob, int n_token, struct sh_slots_policy *to)
{
    to->rule = is_epochs(knob) ? SH_SLOTS_LOW_EPOCHS : SH_SLOTS_LOW_RING;
    to->by_row = (int)knob[THRESHOLD] != BY_CACHE;
    to->rate = (int)knob[COUNTS] == RATE;
    to->look_back = sh_low_rows_window(knob[WINDOW], n_token);
    if (keeps_rows(knob))
        return "threshold=t needs whole rows of attention";
    return to->look_back > SH_SLOTS_LOOK_BACK ? "its window is too long" : NULL;
}

static const char *const thresholds[] = {"n", "i", "t", NULL};
static const char *const all_counts[] = {"raw", "rate", NULL};
static const char *const counters[] = {"ring", "epochs", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(10),
    [DROP] = SH_KNOB_DROP(0.5),
    [WINDOW] = {"window", 400, 1, 1 << 20, NULL, "number of last rows that count", 1},
    [THRESHOLD] = {"threshold", BY_CACHE, 0, BY_TIME, thresholds,
                   "low: below 1/n (n: tokens cached), 1/(i+1) (i: row) or 1/t (t: tokens so far)", 1},
    [COUNTS] = {"counts", RAW, 0, RATE, all_counts, "number of low rows, or their share of the rows a token was in", 1},
    [COUNTER] = {"counter", RING, 0, EPOCHS, counters, "exact, or two counters per slot (threshold=t is then i)", 1},
    {0}};

const struct sh_policy sh_policy_scissorhands = {
    .name = "scissorhands",
    .summary = "drops the token most often unimportant to recent tokens, as the Scissorhands paper does",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = is_stack,
    .device = device,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
