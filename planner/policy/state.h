/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a policy for one head, as its descriptor declares it: the policy's struct, then its arrays. Sizes,
 * clearing and moving follow from the declaration here only. `h` must be the same in all calls for a state, and outlive
 * it. */
#ifndef SH_PLANNER_POLICY_STATE_H
#define SH_PLANNER_POLICY_STATE_H

#include "planner/policy/policy.h"

/* Bytes that the state takes here, and that a cache which runs the policy must keep for it. */
size_t sh_state_bytes(const struct sh_policy *p, const struct sh_policy_head *h);
size_t sh_state_resident_bytes(const struct sh_policy *p, const struct sh_policy_head *h);

/* Before the head's first token. NULL: the policy keeps nothing. free() frees it. */
void *sh_state_new(const struct sh_policy *p, const struct sh_policy_head *h);
void sh_state_restart(void *s, const struct sh_policy *p, const struct sh_policy_head *h);

/* A token has come into a slot. */
void sh_state_admit(void *s, const struct sh_policy *p, int slot, const struct sh_cache *c, const struct sh_step *t);

/* The score of every slot, as policy.h has it; NULL: a token's position. */
const float *sh_state_score(void *s, const struct sh_policy *p, const struct sh_cache *c, const struct sh_step *t,
                            float *scratch);

/* What `from` knows of its tokens goes to `to`, whose head is the same but for its capacity. */
struct sh_state_end { void *s; const struct sh_policy_head *h; };
void sh_state_move(const struct sh_policy *p, struct sh_state_end to, struct sh_state_end from,
                   const struct sh_move *m);

#endif
