/* SPDX-License-Identifier: Apache-2.0 */
/* Each token goes where it saves the most of the model's own loss. What a layer's evictions cost is measured in the
 * live model, one layer at a time: the divergence of the output from the full cache's. Losses of layers add up, so
 * tokens go to the layer whose curve of loss over tokens falls most; those of the heads of a layer do not (they stand
 * in for one another), so within a layer the tokens are greedy's.
 *
 * A layer's curve: the measured losses made to fall (isotonic regression), straight in the logarithm of the budget
 * between them and to no loss at n_token; then the largest convex curve below. */
#include <math.h>
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

/* The nearest values that do not rise (pool adjacent violators, Ayer 1955): y [n] in place. */
static void make_fall(double *y, int n)
{
    int *size = xcalloc((size_t)n, sizeof *size), m = 0;
    double *level = xcalloc((size_t)n, sizeof *level);
    for (int i = 0; i < n; i++) {
        level[m] = y[i];
        size[m++] = 1;
        for (; m > 1 && level[m - 1] > level[m - 2]; m--) {
            int both = size[m - 2] + size[m - 1];
            level[m - 2] = (level[m - 2] * size[m - 2] + level[m - 1] * size[m - 1]) / both;
            size[m - 2] = both;
        }
    }
    for (int k = 0, i = 0; k < m; k++)
        for (int j = 0; j < size[k]; j++)
            y[i++] = level[k];
    free(size);
    free(level);
}

enum { MOST = 2048 };                   /* budgets at which a curve is computed                   */

/* Budgets from floor to n_token, evenly spaced but for the last: x [at most MOST + 1]. Returns how many. */
static int spaced(const struct sh_allocation *a, int *x)
{
    int step = (a->n_token - a->floor + MOST - 1) / MOST, n = 0;
    for (int b = a->floor; b < a->n_token; b += step)
        x[n++] = b;
    x[n++] = a->n_token;
    return n;
}

double sh_loss_at(const double *loss, const int *point, int n, int n_token, double budget)
{
    int k = 0;
    if (budget >= n_token)
        return 0;
    while (k + 1 < n && point[k + 1] <= budget)
        k++;
    double from = point[k], to = k + 1 < n ? point[k + 1] : n_token, end = k + 1 < n ? loss[k + 1] : 0;
    return loss[k] + (end - loss[k]) * log(budget / from) / log(to / from);
}

/* -loss at the budgets x [n]. */
static void gains(const struct sh_allocation *a, int layer, const int *x, int n, double *gain)
{
    double *y = xcalloc((size_t)a->n_loss, sizeof *y);
    for (int k = 0; k < a->n_loss; k++)
        y[k] = a->loss[(size_t)layer * (size_t)a->n_loss + (size_t)k];
    make_fall(y, a->n_loss);
    for (int i = 0; i < n; i++)
        gain[i] = -sh_loss_at(y, a->loss_point, a->n_loss, a->n_token, x[i]);
    free(y);
}

/* A token more on average takes as many tokens as the layer has heads. Slopes are those of n_head tokens. */
static void by_token(const struct sh_allocation *a, int heads, struct sh_slope *piece, int n)
{
    for (int i = 0; i < n; i++) {
        piece[i].slope *= (double)a->n_head / heads;
        piece[i].tokens *= heads;
    }
}

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int *x = xcalloc(MOST + 1, sizeof *x), n = spaced(a, x), n_piece = 0;
    double *gain = xcalloc((size_t)n, sizeof *gain);
    struct sh_slope *piece = xcalloc((size_t)a->n_layer * (size_t)n, sizeof *piece);
    long long *taken = xcalloc((size_t)a->n_layer, sizeof *taken);
    (void)knob;
    for (int l = 0; l < a->n_layer && n > 1; l++) {
        gains(a, l, x, n, gain);
        int got = sh_concave_pieces(x, gain, n, l, piece + n_piece);
        by_token(a, sh_allocation_heads(a, l), piece + n_piece, got);
        n_piece += got;
    }
    int heads = sh_allocation_first(a, a->n_layer);
    sh_fill_steepest(piece, n_piece, (long long)heads * (a->mean - a->floor), taken);
    for (int l = 0; l < a->n_layer; l++)
        sh_greedy_layer(a, l, taken[l] + (long long)sh_allocation_heads(a, l) * a->floor,
                        budget + sh_allocation_first(a, l));
    free(x);
    free(gain);
    free(piece);
    free(taken);
}

const struct sh_allocator sh_allocator_loss = {
    .name = "loss",
    .summary = "each token to the layer where it saves most loss, as measured layer by layer",
    .needs = SH_EVIDENCE_CURVE | SH_EVIDENCE_LOSS,
    .monotone = 1,
    .share = share,
};
