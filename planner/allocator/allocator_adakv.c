/* SPDX-License-Identifier: Apache-2.0 */
/* Within a layer, more to the heads whose keys score most: the layer's mean * n_head tokens are the best of all its
 * heads' keys together, but every head has alpha * mean of its own first (Ada-KV, arXiv 2407.11550). Layers get the
 * same. Protected tokens are always kept, so the scores are those of the others. A plan is made for future texts, so
 * the scores are profiles over the trace (the best key's, the second best's, …), whereas Ada-KV itself looks at one
 * prompt. Of equal scores the first head's comes first. */
#include <math.h>

#include "planner/allocator/allocator.h"

static const struct sh_knob knobs[] = {
    {"alpha", 0.2, 0, 1, NULL, "share of the mean that every head gets at least; 1: uniform", 0},
    {"window", 32, 1, 1 << 20, NULL, "number of last queries whose attention gives the scores", 1},
    {0}};

static void share_layer(const struct sh_allocation *a, int n_head, int own, const double *score, int *budget)
{
    const int protected = a->floor - 1;
    long long left = (long long)n_head * (a->mean - own);
    for (int h = 0; h < n_head; h++)
        budget[h] = own;
    for (; left > 0; left--) {
        int best = -1;
        double most = -1;
        for (int h = 0; h < n_head; h++) {
            const double *of_head = score + (long long)h * a->n_token;
            if (budget[h] < a->n_token && of_head[budget[h] - protected] > most) {
                most = of_head[budget[h] - protected];
                best = h;
            }
        }
        budget[best]++;
    }
}

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int own = (int)floor(knob[0] * a->mean + 1e-9);
    own = own < a->floor ? a->floor : own;
    for (int l = 0; l < a->n_layer; l++) {
        long long at = sh_allocation_first(a, l);
        share_layer(a, sh_allocation_heads(a, l), own, a->score + at * a->n_token, budget + at);
    }
}

const struct sh_allocator sh_allocator_adakv = {
    .name = "adakv",
    .summary = "within a layer, more to heads whose keys have the highest scores",
    .knobs = knobs,
    .needs = SH_EVIDENCE_SCORE,
    .monotone = 1,
    .share = share,
};
