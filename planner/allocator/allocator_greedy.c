/* SPDX-License-Identifier: Apache-2.0 */
/* Each token goes where it keeps the most attention: from the floor on, the next token goes to the head whose
 * budget curve (kept mass over tokens) rises most there. Curves are known at some budgets and taken as straight
 * between them, and the upper concave envelope replaces a curve: for concave curves that is the curve, and no other
 * budgets of the same total keep more; for others the sum of the envelopes is greatest. Of equal slopes the first
 * head's comes first. */
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

/* n heads from `first` on have `left` tokens besides their floors. */
static void share_heads(const struct sh_allocation *a, int first, int n, long long left, int *budget)
{
    size_t points = (size_t)a->n_point;
    struct sh_slope *piece = xcalloc((size_t)n * points, sizeof *piece);
    long long *taken = xcalloc((size_t)n, sizeof *taken);
    int n_piece = 0;
    for (int i = 0; i < n; i++)
        n_piece += sh_concave_pieces(a->point, a->curve + (size_t)(first + i) * points, a->n_point, i, piece + n_piece);
    sh_fill_steepest(piece, n_piece, left, taken);
    for (int i = 0; i < n; i++)
        budget[i] = a->floor + (int)taken[i];
    free(piece);
    free(taken);
}

void sh_greedy_layer(const struct sh_allocation *a, int layer, long long total, int *budget)
{
    int n = sh_allocation_heads(a, layer);
    share_heads(a, sh_allocation_first(a, layer), n, total - (long long)n * a->floor, budget);
}

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int n = sh_allocation_first(a, a->n_layer);
    (void)knob;
    share_heads(a, 0, n, (long long)n * (a->mean - a->floor), budget);
}

const struct sh_allocator sh_allocator_greedy = {
    .name = "greedy",
    .summary = "each token to the head where it keeps most attention, by measured budget curves",
    .needs = SH_EVIDENCE_CURVE,
    .monotone = 1,
    .share = share,
};
