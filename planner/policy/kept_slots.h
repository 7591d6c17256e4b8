/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that one head keeps: slots, positions, and the policy that decides which tokens are evicted. Replay and
 * the engine both drive this object, so plans and models run the same code. For each token, in order (policy.h):
 *
 *     n = sh_kept_make_room(k, t, future, dropped);   slots that are free from now on
 *     slot = sh_kept_admit(k, t);                     where token t's key and value go, before observe
 *     … the query of t attends over the live slots …
 *     sh_kept_observe(k, &step);
 *
 * One thread at a time. A new token takes the slot that was freed last; nothing moves. */
#ifndef SH_PLANNER_POLICY_KEPT_SLOTS_H
#define SH_PLANNER_POLICY_KEPT_SLOTS_H

#include "planner/policy/policy.h"

struct sh_kept_setup {
    const struct sh_policy_spec *spec;
    int budget;                         /* tokens; ignored if the policy keeps all                */
    int prefill, window;                /* window: of a windowed layer; 0: none                   */
    int n_token;                        /* the most tokens that will come                         */
    int capacity;                       /* slots; 0: as many as budget and prefill ask for, -1: the budget alone */
    int layer, head, n_layer;
    const float *k, *v;                 /* rows as in sh_cache; NULL if not there                 */
    int d_head, rows_by_slot;
    uint64_t seed;
};

struct sh_kept;

/* For an object with this setup: the most tokens that it keeps, and the number of its slots. */
int sh_kept_room(const struct sh_kept_setup *setup);
int sh_kept_slots(const struct sh_kept_setup *setup);

/* The budget must be sh_policy_least_budget or more. */
struct sh_kept *sh_kept_new(const struct sh_kept_setup *setup);
void sh_kept_free(struct sh_kept *k);                   /* NULL is fine */
void sh_kept_restart(struct sh_kept *k, const float *keys, const float *values);    /* for another sequence */

/* Makes room for token t. dropped (room for the capacity; NULL: not wanted): the slots that are now free. Returns their
 * number. */
int sh_kept_make_room(struct sh_kept *k, int t, const float *future, int *dropped);
int sh_kept_admit(struct sh_kept *k, int t);
void sh_kept_observe(struct sh_kept *k, const struct sh_step *step);

/* The slots [n] that the next n tokens take if none leaves before they are there. */
void sh_kept_next_slots(const struct sh_kept *k, int n, int *slot);

/* An empty object for the same head, with another size and other keys and values. */
struct sh_kept *sh_kept_like(const struct sh_kept *k, int capacity, const float *keys, const float *values);

/* `to`, of the same head, is emptied and takes over what `from` keeps, policy state included: slot i [n] of `to` is
 * slot from_slot[i] of `from`; -1: it is free. */
void sh_kept_move(struct sh_kept *to, const struct sh_kept *from, const int *from_slot, int n);

/* `to`, with the same setup, becomes `from`, slot by slot. */
void sh_kept_copy(struct sh_kept *to, const struct sh_kept *from);

/* The number of kept tokens after token t has been admitted. */
int sh_kept_count_at(const struct sh_kept *k, int t);

/* The cache; its head has the budget and the capacity. */
const struct sh_cache *sh_kept_cache(const struct sh_kept *k);
size_t sh_kept_policy_bytes(const struct sh_kept *k);   /* resident bytes of the policy's state */
size_t sh_kept_all_bytes(const struct sh_kept *k);      /* bytes that it takes now, scratch included */

#endif
