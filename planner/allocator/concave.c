/* SPDX-License-Identifier: Apache-2.0 */
/* See concave.h. The upper half of a convex hull, from left to right (Andrew 1979). */
#include "planner/allocator/concave.h"

int sh_concave_corners(const int *x, const double *y, int n, int *corner)
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
