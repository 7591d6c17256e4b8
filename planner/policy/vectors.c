/* SPDX-License-Identifier: Apache-2.0 */
/* See vectors.h. */
#include "planner/policy/vectors.h"

#include <math.h>

#include "src/base/clones.h"

SH_CLONES void sh_add_scaled(float *restrict to, const float *restrict x, float factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * x[i];
}

/* Eight partial sums, so that the order is the same however wide the registers are. */
SH_CLONES float sh_dot(const float *a, const float *b, int n)
{
    float part[8] = {0}, sum = 0;
    int whole = n / 8 * 8;
    for (int i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; k++)
            part[k] += a[i + k] * b[i + k];
    for (int k = 0; k < 8; k++)
        sum += part[k];
    for (int i = whole; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

float sh_key_scale(const struct sh_cache *c, int slot)
{
    const float *k = sh_cache_row(c, c->k, slot);
    float length = sqrtf(sh_dot(k, k, c->d_head));
    return length > 0 ? 1 / length : 0;
}

void sh_key_sum(const struct sh_cache *c, const float *scale, float *sum)
{
    for (int i = 0; i < c->d_head; i++)
        sum[i] = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            sh_add_scaled(sum, sh_cache_row(c, c->k, i), scale[i], c->d_head);
}
