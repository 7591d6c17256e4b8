/* SPDX-License-Identifier: Apache-2.0 */
/* Scissorhands (Liu et al. 2023), Algorithm 2 with the paper's slips repaired: of the last `window`
 * rows, count for every token those in which it got less than the threshold; the tokens with most such
 * rows leave, `drop` at once. Rows older than a token count nothing for it.
 *
 * threshold: n, of the rows then in the cache: 1/n_row; i, of the row's own place: 1/(i + 1); t, of the
 * moment of the decision: 1/t for all rows of the window, which is what the paper prints.
 *
 * The counts come from a ring of the last rows (bits; with `t` the attention itself, since the
 * threshold is not known when the row is seen), or from two counters a slot: low rows of the running
 * epoch of `window` rows and of the one before. With e rows of the running epoch gone, the estimate is
 * current + previous * (1 - e / window). It is exact until the first epoch ends and whenever one ends,
 * and never off by more than window / 4: of the previous epoch's p low rows between p - e and p lie in
 * its last window - e rows, and no more than window - e. With `t` the epochs take the threshold of the
 * row's own time. */
#include "planner/policy/low_rows.h"
#include "planner/policy/policy.h"
#include "src/base/clones.h"
#include "src/base/num.h"

enum knob { SINKS, RECENT, DROP, WINDOW, THRESHOLD, COUNTS, COUNTER };
enum threshold { BY_CACHE, BY_ROW, BY_TIME };
enum counts { RAW, RATE };
enum counter { RING, EPOCHS };

struct state {
    int capacity, window, threshold, counts, counter;
    int n_row;                          /* observed so far */
    struct sh_low_rows ring;
    int32_t *low;                       /* [capacity]: low rows within the window (epochs: the running one) */
    int32_t *before;                    /* [capacity]: epochs: the previous one; else: the row that a token came with */
    float *rows;                        /* [window][capacity] */
};

static int is_ring_of_bits(const double *knob)
{
    return (int)knob[COUNTER] == RING && (int)knob[THRESHOLD] != BY_TIME;
}

/* No text has more rows than tokens. */
static int rows_back(const double *knob, int n_token)
{
    int window = (int)knob[WINDOW];
    return n_token > 0 && window > n_token ? n_token : window;
}

static int window_of(const struct sh_policy_head *h)
{
    return rows_back(h->knob, h->n_token);
}

/* Of the rings; two counters a slot come on top. */
static size_t ring_bytes(const struct sh_policy_head *h)
{
    int window = window_of(h);
    if (is_ring_of_bits(h->knob))
        return sh_low_rows_ring_bytes(h->capacity, window);
    return (int)h->knob[COUNTER] == EPOCHS ? 0 : (size_t)window * (size_t)h->capacity * sizeof(float);
}

static size_t state_bytes(const struct sh_policy_head *h)
{
    if (is_ring_of_bits(h->knob))
        return sizeof(struct state) + sh_low_rows_bytes(h->capacity, window_of(h));
    return sizeof(struct state) + 2 * (size_t)h->capacity * sizeof(int32_t) + ring_bytes(h);
}

static size_t resident_bytes(const struct sh_policy_head *h)
{
    return 2 * (size_t)h->capacity * sizeof(uint16_t) + ring_bytes(h);
}

static void begin(void *state, const struct sh_policy_head *h)
{
    struct state *s = state;
    s->capacity = h->capacity;
    s->window = window_of(h);
    s->threshold = (int)h->knob[THRESHOLD];
    s->counts = (int)h->knob[COUNTS];
    s->counter = (int)h->knob[COUNTER];
    s->low = (int32_t *)(s + 1);
    s->before = s->low + s->capacity;
    s->rows = (float *)(s->before + s->capacity);
    if (!is_ring_of_bits(h->knob))
        return;
    sh_low_rows_place(&s->ring, s + 1, h->capacity, s->window);
    s->low = s->ring.low;
}

static void admit(void *state, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    (void)c;
    (void)t;
    if (s->ring.bits) {
        sh_low_rows_admit(&s->ring, slot);
        return;
    }
    s->low[slot] = 0;
    s->before[slot] = s->counter == RING ? s->n_row : 0;
}

SH_CLONES static void count_epoch(int32_t *restrict low, const float *restrict row, const int *restrict pos,
                                  float limit, int n)
{
    for (int i = 0; i < n; i++)
        low[i] += (row[i] < limit) & (pos[i] >= 0);
}

static float limit_of(const struct state *s, const struct sh_step *t)
{
    int n = s->threshold == BY_CACHE ? t->n_row : t->t + 1;
    return sh_round_up(1.0 / n);
}

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    if (s->ring.bits) {
        sh_low_rows_add(&s->ring, t->row, c->pos, c->n_slot, limit_of(s, t));
    } else if (s->counter == EPOCHS) {
        if (s->n_row && s->n_row % s->window == 0)
            for (int i = 0; i < s->capacity; i++) {
                s->before[i] = s->low[i];
                s->low[i] = 0;
            }
        count_epoch(s->low, t->row, c->pos, limit_of(s, t), c->n_slot);
    } else {
        float *row = s->rows + (size_t)(s->n_row % s->window) * (size_t)s->capacity;
        for (int i = 0; i < c->n_slot; i++)
            row[i] = t->row[i];
    }
    s->n_row++;
}

SH_CLONES static void count_row(int32_t *restrict low, const float *restrict row, const int32_t *restrict born,
                                float limit, int number, int n)
{
    for (int i = 0; i < n; i++)
        low[i] += (row[i] < limit) & (born[i] <= number);
}

static void count_by_time(struct state *s, int t, int n)
{
    int first = s->n_row > s->window ? s->n_row - s->window : 0;
    for (int i = 0; i < n; i++)
        s->low[i] = 0;
    for (int r = first; r < s->n_row; r++) {
        const float *row = s->rows + (size_t)(r % s->window) * (size_t)s->capacity;
        count_row(s->low, row, s->before, sh_round_up(1.0 / t), r, n);
    }
}

/* Rows of the window that a token has been in, 1 at least. */
static float rows_seen(const struct state *s, const struct sh_cache *c, int slot, int t)
{
    int seen = t - c->pos[slot];
    return (float)(seen < 1 ? 1 : seen < s->window ? seen : s->window);
}

SH_CLONES static void weigh_epochs(float *restrict to, const int32_t *restrict low, const int32_t *restrict before,
                                 float kept, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = -((float)low[i] + kept * (float)before[i]);
}

SH_CLONES static void weigh_counts(float *restrict to, const int32_t *restrict low, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = -(float)low[i];
}

static void carry(void *to, const void *from, const struct sh_carry *c)
{
    struct state *s = to;
    const struct state *old = from;
    s->n_row = old->n_row;
    if (s->ring.bits) {
        sh_low_rows_carry(&s->ring, &old->ring, c);
        return;
    }
    sh_carry_words(c, s->low, old->low);
    sh_carry_words(c, s->before, old->before);
    for (size_t r = 0; s->counter == RING && r < (size_t)s->window; r++)
        sh_carry_words(c, s->rows + r * (size_t)s->capacity, old->rows + r * (size_t)old->capacity);
}

static const float *worth(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    if (s->counter == RING && s->threshold == BY_TIME)
        count_by_time(s, t->t, c->n_slot);
    float kept = 0;
    if (s->counter == EPOCHS && s->n_row > s->window) {
        int gone = (s->n_row - 1) % s->window + 1;
        kept = 1 - (float)gone / (float)s->window;
    }
    if (s->counter == EPOCHS)
        weigh_epochs(scratch, s->low, s->before, kept, c->n_slot);
    else
        weigh_counts(scratch, s->low, c->n_slot);
    for (int i = 0; s->counts == RATE && i < c->n_slot; i++)
        scratch[i] /= rows_seen(s, c, i, t->t);
    return scratch;
}

/* With one token at a time the schedule is the same for every budget; but 1/n_row is another threshold
 * in each. */
static int is_stack(const double *knob)
{
    return knob[DROP] == 1 && (int)knob[THRESHOLD] != BY_CACHE;
}

static const char *device(const double *knob, int n_token, struct sh_slots_policy *to)
{
    int is_epochs = (int)knob[COUNTER] == EPOCHS;
    to->rule = is_epochs ? SH_SLOTS_LOW_EPOCHS : SH_SLOTS_LOW_RING;
    to->by_row = (int)knob[THRESHOLD] != BY_CACHE;
    to->rate = (int)knob[COUNTS] == RATE;
    to->look_back = rows_back(knob, n_token);
    if (!is_epochs && !is_ring_of_bits(knob))
        return "threshold=t wants whole rows of attention";
    return to->look_back > SH_SLOTS_LOOK_BACK ? "it looks back on too many rows" : NULL;
}

static const char *const thresholds[] = {"n", "i", "t", NULL};
static const char *const all_counts[] = {"raw", "rate", NULL};
static const char *const counters[] = {"ring", "epochs", NULL};
static const struct sh_knob knobs[] = {
    [SINKS] = SH_KNOB_SINKS(0),
    [RECENT] = SH_KNOB_RECENT(10),
    [DROP] = {"drop", 0.5, 0, 1 << 20, NULL, "tokens that leave at once; below 1: a fraction of the budget", 0},
    [WINDOW] = {"window", 400, 1, 1 << 20, NULL, "rows that are looked back on", 1},
    [THRESHOLD] = {"threshold", BY_CACHE, 0, BY_TIME, thresholds,
                   "low is below 1/n (n cached), 1/(i+1) (i the row), 1/t (t the time of the decision)", 1},
    [COUNTS] = {"counts", RAW, 0, RATE, all_counts, "low rows, or their share of the rows that a token was in", 1},
    [COUNTER] = {"counter", RING, 0, EPOCHS, counters, "exact, or two counters per slot (threshold=t is then i)", 1},
    {0}};

const struct sh_policy sh_policy_scissorhands = {
    .name = "scissorhands",
    .summary = "drops what was unimportant in most of the recent rows (the paper's Algorithm 2)",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES,
    .is_stack = is_stack,
    .device = device,
    .state_bytes = state_bytes,
    .resident_bytes = resident_bytes,
    .begin = begin,
    .carry = carry,
    .admit = admit,
    .observe = observe,
    .worth = worth,
};
