/* SPDX-License-Identifier: Apache-2.0 */
/* See arch.h. */
#include "src/model/arch.h"

#include <math.h>

int sh_arch_window(const struct sh_arch *a, int layer)
{
    return a->whole[layer / 64] >> layer % 64 & 1 ? 0 : a->window;
}

void sh_arch_see_all(struct sh_arch *a, int layer)
{
    a->whole[layer / 64] |= (uint64_t)1 << layer % 64;
}

float sh_arch_scale(const struct sh_arch *a, int layer)
{
    return a->flags & SH_SCALED_BY_LAYER ? a->scale / (float)(layer + 1) : a->scale;
}

const struct sh_rope *sh_arch_rope(const struct sh_arch *a, int layer)
{
    return a->local_rope.base > 0 && sh_arch_window(a, layer) ? &a->local_rope : &a->rope;
}

static int follows_length(const struct sh_rope *r)
{
    return r->kind == SH_ROPE_DYNAMIC || r->kind == SH_ROPE_LONG;
}

int sh_arch_follows_length(const struct sh_arch *a)
{
    return follows_length(&a->rope) || follows_length(&a->local_rope);
}

/* A geometric series for a power of two; the heads beyond take every other slope of the next one. */
float sh_arch_slope(const struct sh_arch *a, int head)
{
    int power = 1;
    while (power <= a->n_head / 2)
        power *= 2;
    if (head < power)
        return (float)exp2(-8.0 * (head + 1) / power);
    return (float)exp2(-4.0 * (2 * (head - power) + 1) / power);
}
