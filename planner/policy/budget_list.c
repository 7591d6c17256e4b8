/* SPDX-License-Identifier: Apache-2.0 */
/* See budget_list.h. */
#include "planner/policy/budget_list.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"

/* Eight lanes, as two halves: vectors of 64 bytes have a register in few machines, and elsewhere are compared number by
 * number. */
enum { LANES = 8, HALF = LANES / 2 };
typedef int64_t half __attribute__((vector_size(HALF * sizeof(int64_t))));

static const int64_t low_half = UINT32_MAX;

void sh_budget_list_begin(struct sh_budget_list *l, int most)
{
    *l = (struct sh_budget_list){.most = most};
    l->room = (most + SH_LIST_BLOCK) / SH_LIST_BLOCK * SH_LIST_BLOCK;           /* at least one more */
    l->token = xaligned((size_t)l->room * sizeof *l->token);
    l->pair = xaligned(SH_LIST_RUN * sizeof *l->pair);
    memset(l->token, 0, (size_t)l->room * sizeof *l->token);
}

void sh_budget_list_end(struct sh_budget_list *l)
{
    free(l->token);
    free(l->pair);
}

int sh_budget_list_whole(const struct sh_budget_list *l)
{
    return (l->n + SH_LIST_BLOCK) / SH_LIST_BLOCK * SH_LIST_BLOCK;
}

/* a where the lanes of mask c are ones, else b; written out, for compilers to make a blend of. */
SH_INLINE void pick(const half *c, const half *a, const half *b, half *to)
{
    *to = (*a & *c) | (*b & ~*c);
}

SH_INLINE void least_of(const half *a, const half *b, half *to)
{
    half c = *a < *b;
    pick(&c, a, b, to);
}

/* Of each lane the least of it and the lanes before it. */
SH_INLINE void scan(half *x)
{
    const half none = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    half moved = __builtin_shufflevector(*x, none, 4, 0, 1, 2);
    least_of(x, &moved, x);
    moved = __builtin_shufflevector(*x, none, 4, 4, 0, 1);
    least_of(x, &moved, x);
}

/* Of each lane the least of the lanes before it, `before` for the first; *last: the least of all. (From block to block
 * only `last` is waited for, which takes one comparison.) */
SH_INLINE void least_before(const half least[2], int64_t before, half carried[2], int64_t *last)
{
    const half none = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, start = {before, before, before, before};
    half x = least[0], y = least[1];
    scan(&x);
    scan(&y);
    const half middle = {x[HALF - 1], x[HALF - 1], x[HALF - 1], x[HALF - 1]};
    least_of(&y, &middle, &y);
    carried[0] = __builtin_shufflevector(none, x, 0, 4, 5, 6);
    carried[1] = __builtin_shufflevector(middle, y, 0, 4, 5, 6);
    least_of(&carried[0], &start, &carried[0]);
    least_of(&carried[1], &start, &carried[1]);
    *last = y[HALF - 1] < before ? y[HALF - 1] : before;
}

/* In a block, every lane walks down its own eight places, once it knows what the lanes before carry to it. */
SH_CLONES int64_t sh_budget_list_pass(int32_t *restrict token, const int64_t *restrict pair, int64_t first, int n)
{
    for (int b = 0; b < n; b += SH_LIST_BLOCK) {
        half key[LANES][2], least[2], carried[2];
        int64_t *k = (int64_t *)key;
        for (int i = 0; i < SH_LIST_BLOCK; i++)
            k[i] = (pair[b + i] & ~low_half) | token[b + i];
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            least[h] = key[0][h];
#pragma GCC unroll 8
            for (int i = 1; i < LANES; i++)
                least_of(&key[i][h], &least[h], &least[h]);
        }
        least_before(least, first, carried, &first);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            half down = carried[h];
#pragma GCC unroll 8
            for (int i = 0; i < LANES; i++) {
                half x = key[i][h], c = x < down;
                pick(&c, &down, &x, &key[i][h]);
                pick(&c, &x, &down, &down);
            }
        }
        for (int i = 0; i < SH_LIST_BLOCK; i++)
            token[b + i] = (int32_t)k[i];
    }
    return first;
}

int64_t sh_budget_list_comes(int t)
{
    return (int64_t)INT32_MAX * ((int64_t)1 << 32) + t + 1;
}

static int by_rank(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

void sh_budget_list_start(struct sh_budget_list *l, int t, int first, const int64_t *pair)
{
    int n = t - first;
    int64_t *key = xmalloc(((size_t)n + 1) * sizeof *key);
    for (int i = 0; i < n; i++)
        key[i] = (pair[first + i + 1] & ~low_half) | (first + i + 1);
    qsort(key, (size_t)n, sizeof *key, by_rank);
    memset(l->token, 0, (size_t)l->room * sizeof *l->token);
    l->n = 1;
    l->token[0] = t + 1;
    for (int i = 0; i < n && l->n < l->most; i++)
        l->token[sh_budget_list_at(l->n++)] = (int32_t)(key[i] & low_half);
    free(key);
}
