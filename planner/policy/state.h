/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a policy for one head, as its descriptor declares it: the policy's struct, then its arrays. Sizes,
 * clearing and moving follow from the declaration here only. `h` must be the same in all calls for a state, and outlive
 * it. */
#ifndef SH_PLANNER_POLICY_STATE_H
#define SH_PLANNER_POLICY_STATE_H

#include <string.h>

#include "planner/policy/policy.h"

/* Bytes that the state takes here, and that a cache which runs the policy must keep for it. */
size_t sh_state_bytes(const struct sh_policy *p, const struct sh_policy_head *h);
size_t sh_state_resident_bytes(const struct sh_policy *p, const struct sh_policy_head *h);
/* The second of a head that keeps `kept` tokens of n_token, whose keys and values are d_head wide. */
size_t sh_state_of_head(const struct sh_policy_spec *p, int layer, int n_layer, int d_head, int kept, int n_token);

/* Memory for a state, for free(); NULL: the policy keeps nothing. Restart it before the head's first token. */
void *sh_state_new(const struct sh_policy *p, const struct sh_policy_head *h);
void sh_state_restart(void *s, const struct sh_policy *p, const struct sh_policy_head *h);

/* Clears a slot for a new token after another one has left it; for the first token of a slot it is already clear. */
void sh_state_clear(void *s, const struct sh_policy *p, const struct sh_policy_head *h, int slot);

/* The score of every slot, as policy.h has it; NULL: a token's position. */
static inline const float *sh_state_score(void *s, const struct sh_policy *p, const struct sh_cache *c,
                                          const struct sh_step *t, float *scratch)
{
    const float *first = NULL;
    if (p->score)
        return p->score(s, c, t, scratch);
    if (p->arrays)
        memcpy(&first, (const char *)s + p->arrays->pointer, sizeof first);
    return first;
}

/* Moves the state of the tokens in `from` to `to`, whose head is the same except for its capacity. */
struct sh_state_end { void *s; const struct sh_policy_head *h; };
void sh_state_move(const struct sh_policy *p, struct sh_state_end to, struct sh_state_end from,
                   const struct sh_move *m);

#endif
