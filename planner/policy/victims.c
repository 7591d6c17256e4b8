/* SPDX-License-Identifier: Apache-2.0 */
/* See victims.h. One victim is the common case: vectorised passes for its rank, its position, its slot. For more, the
 * candidates' keys (score, then position) are partitioned around the want-th (Hoare's selection). */
#include "planner/policy/victims.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/base/mem.h"

/* The order of a slot that may be chosen, below INT32_MAX; of others INT32_MAX. Without branches, so that loops over it
 * become vector code. */
SH_INLINE int32_t rank(const struct sh_victims *l, int i)
{
    int32_t key = sh_score_order(l->score[i]);
    int pos = l->pos[i], allowed = -((pos >= l->from) & (pos < l->to) & (pos >= 0));
    key -= key == INT32_MAX;
    return (key & allowed) | (INT32_MAX & ~allowed);
}

/* A token has one slot. */
SH_INLINE int slot_of(const int *pos, int token, int n)
{
    int slot = -1;
    for (int i = 0; i < n; i++)
        slot = pos[i] == token ? i : slot;
    return slot;
}

SH_CLONES static int one(const struct sh_victims *victims)
{
    const struct sh_victims l = *victims;
    int32_t best = INT32_MAX;
    for (int i = 0; i < l.n; i++) {
        int32_t r = rank(&l, i);
        best = r < best ? r : best;
    }
    if (best == INT32_MAX)
        return -1;
    int oldest = INT_MAX;
    for (int i = 0; i < l.n; i++) {
        int chosen = -(rank(&l, i) == best), pos = (l.pos[i] & chosen) | (INT_MAX & ~chosen);
        oldest = pos < oldest ? pos : oldest;
    }
    return slot_of(l.pos, oldest, l.n);
}

SH_CLONES static int oldest_dead(const struct sh_victims *l)
{
    const int *at = l->pos, n = l->n, dead = l->dead;
    int oldest = INT_MAX;
    for (int i = 0; i < n; i++) {
        int chosen = -((at[i] >= 0) & (at[i] < dead)), pos = (at[i] & chosen) | (INT_MAX & ~chosen);
        oldest = pos < oldest ? pos : oldest;
    }
    return oldest < INT_MAX ? slot_of(at, oldest, n) : -1;
}

struct entry {
    int64_t key;                        /* score above, position below */
    int slot;
};

/* Bring the `want` smallest to the front. */
static void select_least(struct entry *e, int n, int want)
{
    int low = 0, high = n - 1;
    while (low < high) {
        int64_t pivot = e[low + (high - low) / 2].key;
        int i = low, j = high;
        while (i <= j) {
            while (e[i].key < pivot)
                i++;
            while (pivot < e[j].key)
                j--;
            if (i <= j) {
                struct entry swap = e[i];
                e[i++] = e[j];
                e[j--] = swap;
            }
        }
        if (want - 1 <= j)
            high = j;
        else if (want - 1 >= i)
            low = i;
        else
            return;
    }
}

static int several(const struct sh_victims *l, int want, int *out)
{
    struct entry *e = xmalloc((size_t)l->n * sizeof *e);
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        int32_t r = rank(l, i);
        if (l->pos[i] >= 0 && l->pos[i] < l->dead)
            r = INT32_MIN;
        if (r != INT32_MAX)
            e[n++] = (struct entry){(int64_t)r * ((int64_t)1 << 31) + l->pos[i], i};
    }
    want = want < n ? want : n;
    select_least(e, n, want);
    for (int i = 0; i < want; i++)
        out[i] = e[i].slot;
    free(e);
    return want;
}

int sh_victims(const struct sh_victims *l, int want, int *out)
{
    if (want != 1 || l->n == 0)
        return want > 0 && l->n > 0 ? several(l, want, out) : 0;
    int slot = l->dead > 0 ? oldest_dead(l) : -1;
    if (slot < 0)
        slot = one(l);
    out[0] = slot;
    return slot >= 0;
}
