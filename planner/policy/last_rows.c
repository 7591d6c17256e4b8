/* SPDX-License-Identifier: Apache-2.0 */
/* See last_rows.h. Floats are added to a double and taken off again, which is exact for scores within
 * 2^-29 of each other, so that the sum does not drift. */
#include "planner/policy/last_rows.h"

#include "src/base/clones.h"

size_t sh_last_rows_bytes(int capacity, int window)
{
    return (size_t)capacity * sizeof(double) + (size_t)window * (size_t)capacity * sizeof(float);
}

void sh_last_rows_place(struct sh_last_rows *r, void *memory, int capacity, int window)
{
    double *sum = memory;
    *r = (struct sh_last_rows){.capacity = capacity, .window = window, .sum = sum, .at = (float *)(sum + capacity)};
}

void sh_last_rows_admit(struct sh_last_rows *r, int slot)
{
    r->sum[slot] = 0;
    for (int i = 0; i < r->window; i++)
        r->at[(size_t)i * (size_t)r->capacity + (size_t)slot] = 0;
}

SH_CLONES static void exchange(double *restrict sum, float *restrict old, const float *restrict row, int n)
{
    for (int i = 0; i < n; i++) {
        sum[i] += (double)row[i] - (double)old[i];
        old[i] = row[i];
    }
}

void sh_last_rows_add(struct sh_last_rows *r, const float *row, int n)
{
    exchange(r->sum, r->at + (size_t)(r->n_row % r->window) * (size_t)r->capacity, row, n);
    r->n_row++;
}

int sh_last_rows_n(const struct sh_last_rows *r)
{
    return r->n_row < r->window ? r->n_row : r->window;
}

const float *sh_last_rows_row(const struct sh_last_rows *r, int i)
{
    return r->at + (size_t)i * (size_t)r->capacity;
}

void sh_last_rows_carry(struct sh_last_rows *r, const struct sh_last_rows *from, const struct sh_carry *c)
{
    r->n_row = from->n_row;
    sh_carry_doubles(c, r->sum, from->sum);
    for (size_t i = 0; i < (size_t)r->window; i++)
        sh_carry_words(c, r->at + i * (size_t)r->capacity, from->at + i * (size_t)from->capacity);
}
