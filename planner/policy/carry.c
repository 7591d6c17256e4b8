/* SPDX-License-Identifier: Apache-2.0 */
/* See carry.h. */
#include "planner/policy/carry.h"

#include <stdint.h>
#include <string.h>

void sh_carry_words(const struct sh_carry *c, void *to, const void *from)
{
    for (int i = 0; i < c->n; i++)
        if (c->from[i] >= 0)
            memcpy((uint32_t *)to + i, (const uint32_t *)from + c->from[i], sizeof(uint32_t));
}

void sh_carry_doubles(const struct sh_carry *c, double *to, const double *from)
{
    for (int i = 0; i < c->n; i++)
        if (c->from[i] >= 0)
            to[i] = from[c->from[i]];
}
