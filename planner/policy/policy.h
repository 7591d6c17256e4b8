/* SPDX-License-Identifier: Apache-2.0 */
/* An eviction policy: which tokens are evicted from the KV cache of one head when it is full. The same object is driven
 * by recorded rows (replay) and by the rows of a live cache (the engine), through kept_slots.h.
 *
 * For token t (its position in the text), with n cached tokens and budget B:
 *   1. if t >= prefill and n >= B: the d = max(drop, n - B + 1) tokens of lowest score leave; in a windowed layer those
 *      before the window leave first, and no others if that is enough: n and d count visible tokens;
 *   2. token t takes a free slot: now n <= B;
 *   3. the query of t attends over the cached tokens, itself included;
 *   4. the policy observes that row.
 * So a decision at t depends only on the rows of tokens < t. With grouped KV heads the row is the mean over the query
 * heads that share the KV head. A token's score is computed by the policy; the attention that it gets from a query is
 * an entry of that query's row.
 *
 * A policy never allocates, prints, reads the clock or another head. It sees the future only if `needs` says so. The
 * same rows, seed and knobs give the same bytes. Of tokens with equal scores, the older is evicted first. The first
 * `sinks` positions and the `recent` newest tokens are never evicted. A free slot has position -1; its entry in rows is
 * 0, and its score is ignored. */
#ifndef SH_PLANNER_POLICY_H
#define SH_PLANNER_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/slots_rule.h"

enum { SH_MAX_KNOBS = 8 };

/* A number, or one of some names (its value is then the name's index). */
struct sh_knob {
    const char *name;                   /* NULL ends the table                                    */
    double default_value, min, max;
    const char *const *names;           /* NULL ends; NULL: a number                              */
    const char *help;
    enum sh_knob_numbers { SH_KNOB_ANY, SH_KNOB_WHOLE, SH_KNOB_WHOLE_OR_SHARE } whole;    /* a share is below 1 */
};

enum sh_needs {                         /* what a policy cannot work without                      */
    SH_NEEDS_SCORES = 1,                /* attention: the rows                                    */
    SH_NEEDS_KEYS = 2,
    SH_NEEDS_VALUES = 4,
    SH_NEEDS_QUERIES = 8,
    SH_NEEDS_PROMPT = 16,               /* decides once, when the prompt has been read: prefill > 0 */
    SH_NEEDS_FUTURE = 32,               /* a bound, not a policy that could run                   */
    SH_IS_BOUND = 64,                   /* not a policy but a bound that replay_bound.c computes  */
    SH_NEEDS_LENGTH = 128               /* decides by n_token: not the same in a cache for longer texts */
};

struct sh_policy;

/* A policy with its knobs set: what "h2o:recent=5" means. */
struct sh_policy_spec {
    const struct sh_policy *policy;
    double knob[SH_MAX_KNOBS];          /* values in the order of policy->knobs                   */
};

/* One head of one sequence, before its first token. */
struct sh_policy_head {
    const struct sh_policy *policy;     /* NULL if no policy is used                              */
    const double *knob;
    int layer, head, n_layer;           /* KV head                                                */
    int budget, prefill;
    int capacity;                       /* slots                                                  */
    int n_token;                        /* the most tokens that may come                          */
    int d_head;                         /* width of keys and values; 0: there are none            */
    uint64_t seed;
};

struct sh_cache {                       /* the tokens kept at the moment                          */
    const struct sh_policy_head *head;  /* its head; NULL if no policy is used                    */
    int n_slot;                         /* slots [0, n_slot) have been used                       */
    int n;                              /* slots that hold a token                                */
    int newest;                         /* the slot of the token that came last                   */
    const int *pos;                     /* [n_slot]: the token in a slot; -1: free. Readable up to */
                                        /* the next multiple of 32 slots                          */
    const float *k, *v;                 /* [.., d_head], row of a slot: sh_cache_row; may be NULL. */
                                        /* The newest token's are there in observe, not in admit  */
    int d_head, rows_by_slot;           /* rows_by_slot 0: rows of k and v are by position        */
};

static inline const float *sh_cache_row(const struct sh_cache *c, const float *rows, int slot)
{
    return rows + (size_t)(c->rows_by_slot ? slot : c->pos[slot]) * (size_t)c->d_head;
}

struct sh_step {
    int t;                              /* admit, observe: the token; score: the one that comes   */
                                        /* (rows seen: those of tokens < t)                       */
    int n_row;                          /* entries that the row's softmax ran over                */
    const float *row;                   /* observe: [n_slot], by slot; NULL unless scores are needed */
    const float *q;                     /* observe: [n_query, d_head] of the group; may be NULL   */
    int n_query;
    const float *future;                /* score: [t], by position: attention that is still to    */
                                        /* come, rows >= t; only with SH_NEEDS_FUTURE             */
};

/* An array of a policy's state: a pointer in its struct to zeroed memory. Its kind gives its size and what happens to
 * it when tokens come and move (state.h); a policy only reads and writes. In a table those of the first kind come
 * first, for speed. */
enum sh_array_kind {
    SH_ARRAY_END,
    SH_PER_SLOT,                        /* [rows, capacity]: 0 when a token comes, moves with it  */
    SH_PER_SLOT_UNCLEARED,              /* as PER_SLOT, but a new token finds the old content     */
    SH_PER_SLOT_BITS,                   /* as PER_SLOT, in bits: [rows, words of 32 slots]        */
    SH_PER_CHANNEL,                     /* [rows, d_head]: copied as it is when tokens move       */
    SH_SLOT_SCRATCH,                    /* [rows, capacity]: neither cleared nor moved            */
    SH_CHANNEL_SCRATCH                  /* [rows, d_head]: neither cleared nor moved              */
};

struct sh_array {
    size_t pointer;                     /* its offset in the policy's struct                      */
    size_t element;                     /* 4 or 8 bytes                                           */
    enum sh_array_kind kind;            /* SH_ARRAY_END ends the table                            */
    size_t resident;                    /* bytes of an element that a running cache must keep; 0: */
                                        /* it is scratch, or can be computed from the cache       */
    size_t (*rows)(const struct sh_policy_head *h);             /* 0: the pointer is NULL; NULL: 1 row */
};

/* The array that a member of `struct state` points to. Its last row may be accessed up to the next multiple of 32
 * slots. */
#define SH_ARRAY(member, of_kind, bytes) SH_ARRAY_ROWS(member, of_kind, bytes, NULL)
#define SH_ARRAY_ROWS(member, of_kind, bytes, count)                                                  \
    {.pointer = offsetof(struct state, member), .element = sizeof *((struct state *)0)->member,       \
     .kind = of_kind, .resident = bytes, .rows = count}

/* The state of policies that keep one number per slot, and its array: the score unless the policy says otherwise.
 * Derived: a cache can compute it from what it has anyway. */
struct sh_score_state { float *score; };                        /* [capacity]                         */
extern const struct sh_array sh_score_kept[], sh_score_derived[];

/* Tokens that move from the slots of one cache to those of another. */
struct sh_move {
    int n, n_from;                      /* slots of the new cache, of the old one                 */
    const int *from;                    /* [n]: the slot that a token comes from; -1: stays free  */
    const int *to;                      /* [n_from]: where it goes; -1: it does not come along    */
};

struct sh_policy {
    const char *name, *summary;         /* summary: what it drops or keeps, as the rest of a sentence   */
    const struct sh_knob *knobs;        /* kept_slots.c reads knobs named sinks, recent and drop  */
    unsigned needs;                     /* enum sh_needs                                          */
    /* Is a token's score on recorded rows independent of the other kept tokens? Then one pass over the full cache gives
     * every budget (replay_stack.c). NULL: never. */
    int (*is_stack)(const double *knob);
    int (*keeps_all)(const double *knob, int layer);            /* whatever the budget; NULL: no   */
    /* Describes the policy to a device; `to` comes as for window, with the knob sinks. Returns why a device
     * cannot run it; NULL: it can. No function: it never can, and the host keeps the cache. */
    const char *(*device)(const double *knob, int n_token, struct sh_slots_policy *to);
    /* Its state: size of its struct (0: none), which comes zeroed, and the arrays that this points to (NULL: none).
     * Numbers in it move unchanged, so they must not depend on capacity. */
    size_t state_bytes;
    const struct sh_array *arrays;
    void (*admit)(void *s, int slot, const struct sh_cache *c, const struct sh_step *t);    /* NULL: nothing to do */
    void (*observe)(void *s, const struct sh_cache *c, const struct sh_step *t);            /* NULL: nothing to do */
    /* The score of every slot; the lowest is evicted first. Returns `scratch` [n_slot], filled, or an array of the
     * state. NULL: the state's first array; without one the position, so that the oldest token is evicted. */
    const float *(*score)(void *s, const struct sh_cache *c, const struct sh_step *t, float *scratch);
};

/* Shared by many policies: the knobs that kept_slots.c reads, "always" for is_stack, and the device's rule for policies
 * that evict by position. */
#define SH_KNOB_SINKS(default_value) {"sinks", default_value, 0, 1 << 20, NULL, "first tokens, never evicted", 1}
#define SH_KNOB_RECENT(default_value)                                                                             \
    {"recent", default_value, 0, 1 << 20, NULL, "newest tokens, never evicted; below 1: a fraction of the budget", \
     SH_KNOB_WHOLE_OR_SHARE}
#define SH_KNOB_DROP(default_value) \
    {"drop", default_value, 0, 1 << 20, NULL, "tokens evicted at once; below 1: a fraction of the budget", 0}
extern const struct sh_knob sh_policy_protect_knobs[];       /* sinks and recent, both 0          */
int sh_policy_always(const double *knob);
const char *sh_policy_by_position(const double *knob, int n_token, struct sh_slots_policy *to);

/* The seed of a head's random numbers. */
uint64_t sh_policy_draws(const struct sh_policy_head *h);

/* The list in policy.c. */
extern const struct sh_policy *const sh_policies[];             /* NULL ends */

/* "streaming:sinks=4,recent=10". Unknown names are errors that name the nearest ones. */
int sh_policy_parse(const char *text, struct sh_policy_spec *out, struct sh_err *e);

/* As above, for the policy `own`, which is not in the list; NULL: search the list. */
int sh_policy_parse_own(const char *text, const struct sh_policy *own, struct sh_policy_spec *out, struct sh_err *e);

/* Knobs in text (knob_text.c), for all that have them. Values are in the order of `knobs` (NULL: none), defaults where
 * the text does not name them. `text` follows the owner's name: ":beta=20,window=32" or empty. Unknown knobs are errors
 * that name the nearest. */
int sh_knobs_parse(const char *owner, const struct sh_knob *knobs, const char *text, double value[SH_MAX_KNOBS],
                   struct sh_err *e);

enum { SH_POLICY_TEXT = 256 };
const char *sh_knobs_text(const struct sh_knob *knobs, const double *value, char text[SH_POLICY_TEXT]);

/* The same in full, every knob written out, as "name=value,…" without the policy's name; for results. */
const char *sh_policy_knobs(const struct sh_policy_spec *p, char text[SH_POLICY_TEXT]);

/* "h2o:recent=10", as a legend shows it: the name, and the knobs that are not at their default; at most SH_POLICY_LABEL
 * - 1 bytes, for free(). A text that is not a policy is returned as it is. is_bound: the policy sees the future. */
enum { SH_POLICY_LABEL = 320 };
char *sh_policy_label(const char *policy, int *is_bound);

/* The knob of that name, or `otherwise` when the policy has none. */
double sh_policy_knob(const struct sh_policy_spec *p, const char *name, double otherwise);

/* The value of a knob in tokens where one below 1 is a fraction of the budget. */
static inline int sh_knob_tokens(double value, int budget)
{
    return (int)(value < 1 ? value * budget : value);
}

/* With this budget: the newest tokens that are never evicted; the same and the sinks; how many are evicted at once. */
int sh_policy_recent(const struct sh_policy_spec *p, int budget);
int sh_policy_protected(const struct sh_policy_spec *p, int budget);
int sh_policy_drop(const struct sh_policy_spec *p, int budget);

/* The smallest budget in which not all tokens are protected from eviction, sinks and newest tokens. */
int sh_policy_least_budget(const struct sh_policy_spec *p);

/* Can a live cache whose first `prefill` tokens see everything run it? -1: no. */
int sh_policy_check_live(const struct sh_policy_spec *p, int prefill, struct sh_err *e);
/* Does a head's budget for a text of up to n_token tokens exceed what is protected? -1: no. */
int sh_policy_check_budget(const struct sh_policy_spec *p, int budget, int n_token, int layer, int head,
                           struct sh_err *e);

int sh_policy_is_stack(const struct sh_policy_spec *p);

/* As the policy's `device`, in texts of up to n_token tokens. */
const char *sh_policy_device(const struct sh_policy_spec *p, int n_token, struct sh_slots_policy *to);

#endif
