/* SPDX-License-Identifier: Apache-2.0 */
/* The least concave curve above given points: what is left of them when every point below the line between two
 * others is taken away. Its slopes fall, so a greedy choice by slope is the best choice there is. */
#ifndef SH_PLANNER_ALLOCATOR_CONCAVE_H
#define SH_PLANNER_ALLOCATOR_CONCAVE_H

/* x [n] ascending, y [n]. Indices of the corners to `corner` [n], ascending; the first and the last point
 * are always among them. Their number. */
int sh_concave_corners(const int *x, const double *y, int n, int *corner);

#endif
