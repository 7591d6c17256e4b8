/* SPDX-License-Identifier: Apache-2.0 */
/* Each token where it keeps most: from the floor on, the next token goes to the head whose budget curve (kept mass over
 * tokens) rises most there. Curves are known at some budgets and taken as straight between them, and the upper concave
 * envelope replaces a curve: for concave curves that is the curve, and no other budgets of the same total keep more;
 * for others the sum of the envelopes is greatest. Of equal slopes the first head's comes first. */
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

struct piece {                          /* of one head's envelope: tokens of equal gain */
    double slope;
    int head, from, tokens;
};

static int steepest_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->slope != y->slope)
        return (x->slope < y->slope) - (x->slope > y->slope);
    return x->head != y->head ? (x->head > y->head) - (x->head < y->head) : (x->from > y->from) - (x->from < y->from);
}

/* Indices of the corners of the least concave curve above the points x [n] ascending, y [n], to `corner` [n]: the upper
 * half of a convex hull, from left to right (Andrew 1979). The first and the last point are always among them. Returns
 * their number. */
static int concave_corners(const int *x, const double *y, int n, int *corner)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        while (m >= 2) {
            int a = corner[m - 2], b = corner[m - 1];
            if ((y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]))
                break;
            m--;
        }
        corner[m++] = i;
    }
    return m;
}

static int pieces_of(const struct sh_allocation *a, int head, int *corner, struct piece *to)
{
    const double *y = a->curve + (size_t)head * (size_t)a->n_point;
    int n = concave_corners(a->point, y, a->n_point, corner);
    for (int i = 1; i < n; i++) {
        int from = a->point[corner[i - 1]], tokens = a->point[corner[i]] - from;
        to[i - 1] = (struct piece){(y[corner[i]] - y[corner[i - 1]]) / tokens, head, from, tokens};
    }
    return n - 1;
}

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int n_head = a->n_layer * a->n_head, n = 0, *corner = xcalloc((size_t)a->n_point, sizeof *corner);
    struct piece *piece = xcalloc((size_t)n_head * (size_t)a->n_point, sizeof *piece);
    long long left = (long long)n_head * (a->mean - a->floor);
    (void)knob;
    for (int i = 0; i < n_head; i++) {
        budget[i] = a->floor;
        n += pieces_of(a, i, corner, piece + n);
    }
    qsort(piece, (size_t)n, sizeof *piece, steepest_first);
    for (int k = 0; k < n && left > 0; k++) {
        int take = piece[k].tokens < left ? piece[k].tokens : (int)left;
        budget[piece[k].head] += take;
        left -= take;
    }
    free(corner);
    free(piece);
}

const struct sh_allocator sh_allocator_greedy = {
    .name = "greedy",
    .summary = "each token where it keeps most, by measured budget curves",
    .needs = SH_EVIDENCE_CURVE,
    .monotone = 1,
    .share = share,
};
