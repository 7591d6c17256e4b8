/* SPDX-License-Identifier: Apache-2.0 */
/* See budget_list.h. */
#include "planner/policy/budget_list.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"

enum { LANES = 8 };
typedef int64_t lanes __attribute__((vector_size(LANES * sizeof(int64_t))));

/* a where the lanes of mask c are ones, else b; written out, for compilers to make a blend of. */
#define PICK(c, a, b) ((lanes)(((a) & (c)) | ((b) & ~(c))))

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

/* Of each lane the least of the lanes before it, `before` for the first; *last: the least of all. */
SH_INLINE void scan(const lanes *least, int64_t before, lanes *exclusive, int64_t *last)
{
    const lanes none = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const lanes carried = {before, before, before, before, before, before, before, before};
    lanes x = *least, moved = __builtin_shufflevector(x, none, 8, 0, 1, 2, 3, 4, 5, 6);
    x = PICK(moved < x, moved, x);
    moved = __builtin_shufflevector(x, none, 8, 8, 0, 1, 2, 3, 4, 5);
    x = PICK(moved < x, moved, x);
    moved = __builtin_shufflevector(x, none, 8, 8, 8, 8, 0, 1, 2, 3);
    x = PICK(moved < x, moved, x);
    moved = __builtin_shufflevector(x, none, 8, 0, 1, 2, 3, 4, 5, 6);
    *exclusive = PICK(moved < carried, moved, carried);
    *last = x[LANES - 1] < before ? x[LANES - 1] : before;
}

/* In a block, every lane walks down its own eight places, once it knows what the lanes before carry to it. */
SH_CLONES int64_t sh_budget_list_pass(int32_t *restrict token, const int64_t *restrict pair, int64_t first, int n)
{
    for (int b = 0; b < n; b += SH_LIST_BLOCK) {
        lanes key[LANES], least, carried;
        int64_t *k = (int64_t *)key;
        for (int i = 0; i < SH_LIST_BLOCK; i++)
            k[i] = (pair[b + i] & ~low_half) | token[b + i];
        least = key[0];
#pragma GCC unroll 8
        for (int i = 1; i < LANES; i++)
            least = PICK(key[i] < least, key[i], least);
        scan(&least, first, &carried, &first);
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            lanes x = key[i], c = x < carried;
            key[i] = PICK(c, carried, x);
            carried = PICK(c, x, carried);
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
