/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that move from the slots of one cache to those of another, with what a policy knows of them:
 * policy.h's `carry` of each policy says what that is. */
#ifndef SH_PLANNER_POLICY_CARRY_H
#define SH_PLANNER_POLICY_CARRY_H

#include <stddef.h>

struct sh_carry {
    int n, n_from;                      /* slots of the new cache, of the old one                 */
    const int *from;                    /* [n]: the slot that a token comes from; -1: stays free  */
    const int *to;                      /* [n_from]: where it goes; -1: it does not come along    */
};

/* Elements of 4 or 8 bytes by slot. What stays free is left as it is. */
void sh_carry_words(const struct sh_carry *c, void *to, const void *from);
void sh_carry_doubles(const struct sh_carry *c, double *to, const double *from);

#endif
