/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/repetition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct gram { const int32_t *at; int n; };

static int compare(const void *a, const void *b)
{
    const struct gram *x = a, *y = b;
    int n = x->n < y->n ? x->n : y->n;
    for (int i = 0; i < n; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

/* The n_gram pieces that begin at tokens 0, 1, …, sorted; each `n` long, or up to the text's end (n 0). */
static struct gram *sort_grams(const int32_t *tokens, int n_token, int n, int n_gram)
{
    struct gram *g = xcalloc((size_t)n_gram, sizeof *g);
    for (int i = 0; i < n_gram; i++)
        g[i] = (struct gram){tokens + i, n ? n : n_token - i};
    qsort(g, (size_t)n_gram, sizeof *g, compare);
    return g;
}

double sh_distinct(const int32_t *tokens, int n_token, int n)
{
    int n_gram = n_token - n + 1, different = 1;
    if (n_gram < 1)
        return (double)NAN;
    struct gram *g = sort_grams(tokens, n_token, n, n_gram);
    for (int i = 1; i < n_gram; i++)
        different += compare(&g[i - 1], &g[i]) != 0;
    free(g);
    return (double)different / n_gram;
}

double sh_repetition(const int32_t *tokens, int n_token, int n)
{
    return 1 - sh_distinct(tokens, n_token, n);
}

/* Neighbours among the sorted ends of the text share the longest beginnings. */
int sh_longest_repeat(const int32_t *tokens, int n_token)
{
    int longest = 0;
    if (n_token < 2)
        return 0;
    struct gram *g = sort_grams(tokens, n_token, 0, n_token);
    for (int i = 1; i < n_token; i++) {
        int same = 0, most = g[i - 1].n < g[i].n ? g[i - 1].n : g[i].n;
        while (same < most && g[i - 1].at[same] == g[i].at[same])
            same++;
        longest = same > longest ? same : longest;
    }
    free(g);
    return longest;
}

void sh_row_likeness_add(struct sh_row_likeness *l, int t, const int *pos, const float *row, int n_slot)
{
    unsigned char *now = xcalloc((size_t)t + 1, 1);
    int live = 0, size = 0, both = 0;
    for (int i = 0; i < n_slot; i++)
        live += pos[i] >= 0;
    for (int i = 0; i < n_slot; i++)
        if (pos[i] >= 0 && (double)row[i] * live > 1) {
            now[pos[i]] = 1;
            size++;
            both += pos[i] < l->n_before && l->before[pos[i]];
        }
    if (l->before && size + l->size_before > 0) {
        double by_chance = (double)size * l->size_before / (live > l->size_before ? live : l->size_before);
        l->sum += (double)both / (size + l->size_before - both);
        l->chance += by_chance / (size + l->size_before - by_chance);
        l->pairs++;
    }
    free(l->before);
    l->before = now;
    l->n_before = t + 1;
    l->size_before = size;
}

void sh_row_likeness_clear(struct sh_row_likeness *l)
{
    free(l->before);
    l->before = NULL;
    l->n_before = l->size_before = 0;
}
