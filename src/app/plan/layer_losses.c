/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/layer_losses.h"

#include <math.h>
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

static double within(double x, double least, double most)
{
    return x < least ? least : x < most ? x : most;
}

/* Of those that were measured. */
static double sum(const double *x, int n)
{
    double all = 0;
    for (int i = 0; i < n; i++)
        all += isnan(x[i]) ? 0 : x[i];
    return all;
}

static int n_measured(const double *x, int n)
{
    int some = 0;
    for (int i = 0; i < n; i++)
        some += !isnan(x[i]);
    return some;
}

void sh_layer_losses_aim(double *loss, const double *change, int n_layer, int n, double tokens)
{
    const double variance = 0.25 * 0.25;
    double all = sum(loss, n_layer * n);
    double usual = all > 0 ? within(sum(change, n_layer * n) / all, 0.5, 1.2) : 1;
    for (int l = 0; l < n_layer; l++) {
        double *own = loss + l * n;
        double kl = sum(own, n), more = sum(change + l * n, n), prior = 2 * n_measured(own, n) / (tokens * variance);
        for (int i = 0; i < n; i++)
            own[i] *= within((more + usual * prior) / (kl + prior), 0.1, 2);
    }
}

static void fill(double *loss, const int *point, int n, int n_token)
{
    double *known = xcalloc((size_t)n, sizeof *known);
    int *at = xcalloc((size_t)n, sizeof *at), n_known = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(loss[i])) {
            known[n_known] = loss[i];
            at[n_known++] = point[i];
        }
    for (int i = 0; i < n; i++) {
        double ratio = (double)at[0] / point[i];
        if (isnan(loss[i]))
            loss[i] = point[i] < at[0] ? known[0] * ratio * ratio : sh_loss_at(known, at, n_known, n_token, point[i]);
    }
    free(known);
    free(at);
}

void sh_layer_losses_fill(double *loss, const int *point, int n_layer, int n, int n_token)
{
    for (int l = 0; l < n_layer; l++)
        fill(loss + (size_t)l * (size_t)n, point, n, n_token);
}

int sh_layer_losses_wanted(const double *loss, const int *point, int n, double low, double high, int *to)
{
    int from = 0, end = n - 1, first = 0, last = n - 1, n_to = 0;
    while (from + 2 < n && point[from + 2] <= low)
        from++;
    while (end > 0 && point[end - 1] >= high)
        end--;
    while (first < n && isnan(loss[first]))
        first++;
    while (last > first && isnan(loss[last]))
        last--;
    if (from < first && first > 0 && first < n)
        to[n_to++] = first - 1;
    for (int k = first; k <= last; k++)
        if (isnan(loss[k]) && k >= from && k <= end)
            to[n_to++] = k;
    if (end > last)
        to[n_to++] = last + 1;
    return n_to;
}
