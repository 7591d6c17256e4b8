/* SPDX-License-Identifier: Apache-2.0 */
/* How a device evicts from a cache that it keeps: set by policies (planner/policy/policy.h), done by devices
 * (kernels/slots.h). */
#ifndef SH_BASE_SLOTS_RULE_H
#define SH_BASE_SLOTS_RULE_H

/* The score of a token under policies that need only one or two figures per slot. */
enum sh_slots_rule {
    SH_SLOTS_OLDEST,                    /* its position                                           */
    SH_SLOTS_SUM,                       /* what it received: sum = sum * decay + row              */
    SH_SLOTS_MEAN,                      /* the same without decay, over the rows that it was in   */
    SH_SLOTS_LOW_RING,                  /* less the low rows of the last `look_back`              */
    SH_SLOTS_LOW_EPOCHS                 /* the same, estimated from two counters                  */
};

enum { SH_SLOTS_LOOK_BACK = 65535 };

struct sh_slots_policy {
    enum sh_slots_rule rule;
    int sinks;                          /* first tokens that never leave                          */
    float decay;
    int look_back;                      /* rows, at most SH_SLOTS_LOOK_BACK                       */
    int by_row;                         /* low is below 1/(t + 1); 0: below 1/(keys of the row)   */
    int rate;                           /* low rows over the rows that a token was in             */
};

#endif
