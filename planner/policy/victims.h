/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of lowest score, the older token first where scores are equal. A NaN counts as the least. */
#ifndef SH_PLANNER_POLICY_VICTIMS_H
#define SH_PLANNER_POLICY_VICTIMS_H

#include "src/base/clones.h"
#include "src/base/num.h"

/* Scores as integers of the same order; NaN first. */
SH_INLINE int32_t sh_score_order(float x)
{
    int32_t bits = (int32_t)sh_bits(x + 0.0f);          /* -0 becomes 0 */
    bits ^= (bits >> 31) & INT32_MAX;
    return x == x ? bits : INT32_MIN;
}

struct sh_victims {
    const float *score;                 /* [n], by slot                                           */
    const int *pos;                     /* [n]; < 0: a free slot, never chosen                    */
    int n;
    int from, to;                       /* only tokens at positions [from, to) may be chosen …    */
    int dead;                           /* … and those < dead, which come first, the oldest before all */
};

/* Up to `want` slots into `out`, in no particular order; returns their number. */
int sh_victims(const struct sh_victims *l, int want, int *out);

#endif
