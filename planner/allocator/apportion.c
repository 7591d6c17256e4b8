/* SPDX-License-Identifier: Apache-2.0 */
/* See allocator.h. */
#include "planner/allocator/allocator.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Fix shares at a limit until the rest fits between both. In a round either all that are below the floor are fixed or
 * all that are above the ceiling, whichever moves the sum more: those never come free again in the solution, so it ends
 * after n rounds. */
static void real_shares(const double *weight, int n, double base, int floor, int most, long long total, double *x)
{
    char *fixed = xcalloc((size_t)n, 1);
    for (int again = 1; again;) {
        double rest = (double)total, weights = 0, moved = 0;
        for (int i = 0; i < n; i++) {
            rest -= fixed[i] ? x[i] : base;
            weights += fixed[i] ? 0 : weight[i];
        }
        for (int i = 0; i < n; i++)
            if (!fixed[i]) {
                x[i] = base + rest * weight[i] / weights;
                moved += clip(x[i], floor, most) - x[i];
            }
        again = 0;
        for (int i = 0; i < n; i++) {
            int out = moved >= 0 ? x[i] < floor || (moved == 0 && x[i] > most) : x[i] > most;
            if (!fixed[i] && out) {
                x[i] = clip(x[i], floor, most);
                fixed[i] = 1;
                again = 1;
            }
        }
    }
    free(fixed);
}

struct remainder {
    double part;
    int i;
};

static int largest_first(const void *a, const void *b)
{
    const struct remainder *x = a, *y = b;
    return x->part != y->part ? (x->part < y->part) - (x->part > y->part) : (x->i > y->i) - (x->i < y->i);
}

void sh_apportion(const double *weight, int n, double base, int floor_, int most, long long total, int *out)
{
    const double steps = 0x1p20;        /* so that shares which are equal but for rounding errors are equal */
    double *x = xcalloc((size_t)n, sizeof *x), *w = xcalloc((size_t)n, sizeof *w), top = 0;
    struct remainder *r = xcalloc((size_t)n, sizeof *r);
    long long left = total;
    for (int i = 0; i < n; i++)
        top = weight[i] > top ? weight[i] : top;
    for (int i = 0; i < n; i++)
        w[i] = top <= 0 ? 1 : weight[i] > top * 1e-9 ? weight[i] : top * 1e-9;
    real_shares(w, n, base, floor_, most, total, x);
    for (int i = 0; i < n; i++) {
        double share = clip(nearbyint(x[i] * steps) / steps, floor_, most);
        out[i] = (int)floor(share);
        /* a head at its ceiling is last in line */
        r[i] = (struct remainder){out[i] < most ? share - out[i] : -1, i};
        left -= out[i];
    }
    qsort(r, (size_t)n, sizeof *r, largest_first);
    for (int k = 0; left > 0; k = (k + 1) % n)
        if (out[r[k].i] < most) {
            out[r[k].i]++;
            left--;
        }
    free(x);
    free(w);
    free(r);
}

void sh_layer_weights(const struct sh_allocation *a, const double *weight, double base, int *budget)
{
    int n = sh_allocation_first(a, a->n_layer);
    double *of_head = xcalloc((size_t)n, sizeof *of_head);
    for (int l = 0, i = 0; l < a->n_layer; l++)
        for (int h = 0; h < sh_allocation_heads(a, l); h++)
            of_head[i++] = weight[l];
    sh_apportion(of_head, n, base, a->floor, a->n_token, (long long)n * a->mean, budget);
    free(of_head);
}
