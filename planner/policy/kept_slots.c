/* SPDX-License-Identifier: Apache-2.0 */
/* See kept_slots.h. */
#include "planner/policy/kept_slots.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policy/state.h"
#include "planner/policy/victims.h"
#include "src/base/clones.h"
#include "src/base/mem.h"

struct sh_kept {
    struct sh_kept_setup setup;
    const struct sh_policy *policy;
    struct sh_policy_head head;
    struct sh_cache cache;
    int sinks, recent, drop;
    int *pos;                           /* [capacity, padded as policy.h says] */
    int *freed, n_freed;                /* slots below n_slot that are free; a stack */
    int *chosen;                        /* [capacity] */
    float *scratch;                     /* [capacity], score */
    void *state;
};

/* A cache of more than the window holds dead tokens; one of more than the text holds nothing more. */
int sh_kept_room(const struct sh_kept_setup *s)
{
    const struct sh_policy *p = s->spec->policy;
    int room = p->keeps_all && p->keeps_all(s->spec->knob, s->layer) ? s->n_token : s->budget;
    if (s->window > 0 && room > s->window)
        room = s->window;
    return room > s->n_token && s->n_token > 0 ? s->n_token : room;
}

int sh_kept_slots(const struct sh_kept_setup *s)
{
    int budget = sh_kept_room(s), prefill = s->prefill < s->n_token ? s->prefill : s->n_token;
    int capacity = s->capacity > 0 ? s->capacity : !s->capacity && prefill > budget ? prefill : budget;
    return capacity < 1 ? 1 : capacity;
}

struct sh_kept *sh_kept_new(const struct sh_kept_setup *setup)
{
    struct sh_kept *k = xcalloc(1, sizeof *k);
    k->setup = *setup;
    k->policy = setup->spec->policy;
    int budget = sh_kept_room(setup), capacity = sh_kept_slots(setup);
    k->sinks = (int)sh_policy_knob(setup->spec, "sinks", 0);
    k->recent = sh_policy_recent(setup->spec, budget);
    k->drop = sh_policy_drop(setup->spec, budget);
    k->head = (struct sh_policy_head){.policy = setup->spec->policy, .knob = setup->spec->knob,
                                      .layer = setup->layer, .head = setup->head, .n_layer = setup->n_layer,
                                      .budget = budget, .prefill = setup->prefill,
                                      .capacity = capacity, .n_token = setup->n_token, .d_head = setup->d_head,
                                      .seed = setup->seed};
    k->pos = xcalloc(3 * (size_t)capacity + 31, sizeof *k->pos);
    k->freed = k->pos + capacity;
    k->chosen = k->freed + capacity;
    k->scratch = xmalloc((size_t)capacity * sizeof *k->scratch);
    k->state = sh_state_new(k->policy, &k->head);
    sh_kept_restart(k, setup->k, setup->v);
    return k;
}

void sh_kept_restart(struct sh_kept *k, const float *keys, const float *values)
{
    k->cache = (struct sh_cache){.head = &k->head, .pos = k->pos, .k = keys, .v = values,
                                 .d_head = k->setup.d_head, .rows_by_slot = k->setup.rows_by_slot};
    k->n_freed = 0;
    sh_state_restart(k->state, k->policy, &k->head);
}

void sh_kept_free(struct sh_kept *k)
{
    if (!k)
        return;
    free(k->pos);                       /* and what follows it */
    free(k->scratch);
    free(k->state);
    free(k);
}

/* The policy's score of each slot, or the positions themselves. */
static const float *score_of(struct sh_kept *k, const struct sh_step *step)
{
    const float *score = sh_state_score(k->state, k->policy, &k->cache, step, k->scratch);
    if (score)
        return score;
    for (int i = 0; i < k->cache.n_slot; i++)
        k->scratch[i] = (float)k->pos[i];
    return k->scratch;
}

SH_CLONES static int count_below(const int *pos, int n, int end)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += (pos[i] >= 0) & (pos[i] < end);
    return found;
}

/* Tokens before this position are out of the window. */
static int dead_before(const struct sh_kept *k, int t)
{
    return k->setup.window > 0 ? t + 1 - k->setup.window : 0;
}

/* How many tokens are evicted for token t. Dead tokens do not count as a drop: if they make enough room, no others are
 * evicted. */
static int leaving(const struct sh_kept *k, int t)
{
    int over = k->cache.n - k->head.budget + 1;
    if (over < 1 || t < k->setup.prefill)
        return 0;
    int end = dead_before(k, t), dead = k->drop > 1 && end > 0 ? count_below(k->pos, k->cache.n_slot, end) : 0;
    int rest = over - dead;
    return rest < 1 ? over : dead + (rest > k->drop ? rest : k->drop);
}

int sh_kept_make_room(struct sh_kept *k, int t, const float *future, int *dropped)
{
    int want = leaving(k, t);
    if (!want)
        return 0;
    struct sh_step step = {.t = t, .future = future};
    struct sh_victims victims = {.score = score_of(k, &step), .pos = k->pos, .n = k->cache.n_slot, .from = k->sinks,
                                 .to = t - k->recent, .dead = dead_before(k, t)};
    int n = sh_victims(&victims, want, k->chosen);
    for (int i = 0; i < n; i++) {
        k->pos[k->chosen[i]] = -1;
        k->freed[k->n_freed++] = k->chosen[i];
        if (dropped)
            dropped[i] = k->chosen[i];
    }
    k->cache.n -= n;
    return n;
}

int sh_kept_admit(struct sh_kept *k, int t)
{
    int is_used = k->n_freed > 0, slot = is_used ? k->freed[--k->n_freed] : k->cache.n_slot++;
    if (is_used)
        sh_state_clear(k->state, k->policy, &k->head, slot);
    k->pos[slot] = t;
    k->cache.n++;
    k->cache.newest = slot;
    if (k->policy->admit)
        k->policy->admit(k->state, slot, &k->cache, &(struct sh_step){.t = t});
    return slot;
}

void sh_kept_next_slots(const struct sh_kept *k, int n, int *slot)
{
    int used = n < k->n_freed ? n : k->n_freed;
    for (int i = 0; i < n; i++)
        slot[i] = i < used ? k->freed[k->n_freed - 1 - i] : k->cache.n_slot + i - used;
}

void sh_kept_observe(struct sh_kept *k, const struct sh_step *step)
{
    if (k->policy->observe)
        k->policy->observe(k->state, &k->cache, step);
}

struct sh_kept *sh_kept_like(const struct sh_kept *k, int capacity, const float *keys, const float *values)
{
    struct sh_kept_setup setup = k->setup;
    setup.capacity = capacity;
    setup.k = keys;
    setup.v = values;
    return sh_kept_new(&setup);
}

void sh_kept_move(struct sh_kept *to, const struct sh_kept *from, const int *from_slot, int n)
{
    int n_from = from->cache.n_slot, *to_slot = xmalloc((size_t)(n_from ? n_from : 1) * sizeof *to_slot);
    struct sh_move move = {.n = n, .n_from = n_from, .from = from_slot, .to = to_slot};
    for (int i = 0; i < n_from; i++)
        to_slot[i] = -1;
    sh_kept_restart(to, to->cache.k, to->cache.v);
    to->cache.n_slot = n;
    for (int i = n - 1; i >= 0; i--) {
        to->pos[i] = from_slot[i] < 0 ? -1 : from->pos[from_slot[i]];
        if (from_slot[i] < 0) {
            to->freed[to->n_freed++] = i;
            continue;
        }
        to_slot[from_slot[i]] = i;
        to->cache.n++;
    }
    sh_state_move(to->policy, (struct sh_state_end){to->state, &to->head},
                  (struct sh_state_end){from->state, &from->head}, &move);
    free(to_slot);
}

void sh_kept_copy(struct sh_kept *to, const struct sh_kept *from)
{
    int n = from->cache.n_slot, *same = xmalloc((size_t)(n ? n : 1) * sizeof *same);
    for (int i = 0; i < n; i++)
        same[i] = from->pos[i] < 0 ? -1 : i;
    sh_kept_move(to, from, same, n);
    memcpy(to->freed, from->freed, (size_t)from->n_freed * sizeof *to->freed);  /* in the same order, too */
    free(same);
}

int sh_kept_count_at(const struct sh_kept *k, int t)
{
    return k->cache.n + 1 - leaving(k, t);
}

const struct sh_cache *sh_kept_cache(const struct sh_kept *k)
{
    return &k->cache;
}

size_t sh_kept_policy_bytes(const struct sh_kept *k)
{
    return sh_state_resident_bytes(k->policy, &k->head);
}

size_t sh_kept_all_bytes(const struct sh_kept *k)
{
    return (size_t)k->head.capacity * (3 * sizeof(int) + sizeof(float)) +
           sh_state_bytes(k->policy, &k->head);
}
