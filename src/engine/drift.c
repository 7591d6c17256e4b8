/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/drift.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"

void sh_drift_see(int *last, int t, const struct sh_cache *c)
{
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            last[c->pos[i]] = t;
}

static int first_left(const int *last, int n_token)
{
    int first = n_token;
    for (int j = 0; j < n_token; j++)
        first = last[j] + 1 < first ? last[j] + 1 : first;
    return first;
}

/* Token j is there at steps j to last[j]; in both up to the smaller of the two, in either up to the larger. */
struct sh_drift_head sh_drift_compare(const int *last_a, const int *last_b, int n_token, double *like)
{
    struct sh_drift_head h = {{first_left(last_a, n_token), first_left(last_b, n_token)}, 0, n_token};
    int *both_end = xcalloc((size_t)n_token + 1, sizeof *both_end);
    int *any_end = xcalloc((size_t)n_token + 1, sizeof *any_end);
    int both = 0, any = 0;
    h.same_first = h.first_left[0] == h.first_left[1];
    for (int j = 0; j < n_token; j++) {
        int a = last_a[j], b = last_b[j];
        both_end[(a < b ? a : b) + 1]++;
        any_end[(a < b ? b : a) + 1]++;
        h.same_first &= (a + 1 == h.first_left[0]) == (b + 1 == h.first_left[1]);
    }
    for (int t = 0; t < n_token; t++) {
        both += 1 - both_end[t];
        any += 1 - any_end[t];
        like[t] = (double)both / any;
        if (both != any && h.first_difference == n_token)
            h.first_difference = t;
    }
    free(both_end);
    free(any_end);
    return h;
}

void sh_score_change_add(struct sh_score_change *h, double full, double compressed)
{
    if (!(full > 0))
        return;
    double tenth = floor((compressed - full) / full * 10 + 11);         /* 1 is [-1, -0.9) */
    int bin = !(compressed > 0) ? 0 : tenth < 1 ? 1 : tenth > SH_CHANGE_BINS - 1 ? SH_CHANGE_BINS - 1 : (int)tenth;
    h->pairs[bin]++;
    h->mass[bin] += full;
}
