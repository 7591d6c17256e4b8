/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts concave curves into pieces and gives tokens to the pieces that gain most. For concave curves no division is
 * better. */
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

static int steepest_first(const void *a, const void *b)
{
    const struct sh_slope *x = a, *y = b;
    if (x->slope != y->slope)
        return (x->slope < y->slope) - (x->slope > y->slope);
    return x->of != y->of ? (x->of > y->of) - (x->of < y->of) : (x->from > y->from) - (x->from < y->from);
}

/* The corners: the upper half of a convex hull, from left to right (Andrew 1979). */
int sh_concave_pieces(const int *x, const double *y, int n, int of, struct sh_slope *to)
{
    int *corner = xcalloc((size_t)n, sizeof *corner), m = 0;
    for (int i = 0; i < n; i++) {
        while (m >= 2) {
            int a = corner[m - 2], b = corner[m - 1];
            if ((y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]))
                break;
            m--;
        }
        corner[m++] = i;
    }
    for (int i = 1; i < m; i++) {
        int a = corner[i - 1], b = corner[i], tokens = x[b] - x[a];
        to[i - 1] = (struct sh_slope){(y[b] - y[a]) / tokens, of, x[a], tokens};
    }
    free(corner);
    return m - 1;
}

void sh_fill_steepest(struct sh_slope *piece, int n, long long left, long long *taken)
{
    qsort(piece, (size_t)n, sizeof *piece, steepest_first);
    for (int k = 0; k < n && left > 0; k++) {
        long long take = piece[k].tokens < left ? piece[k].tokens : left;
        taken[piece[k].of] += take;
        left -= take;
    }
}
