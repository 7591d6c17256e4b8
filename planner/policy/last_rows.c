/* SPDX-License-Identifier: Apache-2.0 */
/* See last_rows.h. Floats are added to a double and taken off again, which is exact for scores within
 * 2^-29 of each other, so that the sum does not drift. */
#include "planner/policy/last_rows.h"

#include "src/base/clones.h"

SH_CLONES static void exchange(double *restrict sum, float *restrict old, const float *restrict row, int n)
{
    for (int i = 0; i < n; i++) {
        sum[i] += (double)row[i] - (double)old[i];
        old[i] = row[i];
    }
}

void sh_last_rows_add(struct sh_last_rows *r, const struct sh_cache *c, const float *row, int window)
{
    exchange(r->sum, r->at + (size_t)(r->n_row % window) * (size_t)c->head->capacity, row, c->n_slot);
    r->n_row++;
}

int sh_last_rows_n(const struct sh_last_rows *r, int window)
{
    return r->n_row < window ? r->n_row : window;
}

const float *sh_last_rows_row(const struct sh_last_rows *r, const struct sh_cache *c, int i)
{
    return r->at + (size_t)i * (size_t)c->head->capacity;
}
