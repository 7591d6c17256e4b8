/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/layer_losses.h"

#include <math.h>
#include <stddef.h>

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

/* Straight in the logarithm of the budget, between two budgets. */
static double between(double budget, double from, double loss, double to, double to_loss)
{
    return loss + (to_loss - loss) * log(budget / from) / log(to / from);
}

static void fill(double *loss, const int *point, int n, int n_token)
{
    int first = 0;
    while (first < n - 1 && isnan(loss[first]))
        first++;
    for (int i = 0; i < first; i++) {
        double ratio = (double)point[first] / point[i];
        loss[i] = loss[first] * ratio * ratio;
    }
    for (int i = first + 1; i < n; i++) {
        int next = i;
        while (next < n && isnan(loss[next]))
            next++;
        if (next > i)
            loss[i] = next < n ? between(point[i], point[i - 1], loss[i - 1], point[next], loss[next])
                               : between(point[i], point[i - 1], loss[i - 1], n_token, 0);
    }
}

void sh_layer_losses_fill(double *loss, const int *point, int n_layer, int n, int n_token)
{
    for (int l = 0; l < n_layer; l++)
        fill(loss + (size_t)l * (size_t)n, point, n, n_token);
}

double sh_layer_losses_at(const double *loss, const int *point, int n, int n_token, double budget)
{
    int k = 0;
    if (budget >= n_token)
        return 0;
    while (k + 1 < n && point[k + 1] <= budget)
        k++;
    return k + 1 < n ? between(budget, point[k], loss[k], point[k + 1], loss[k + 1])
                     : between(budget, point[k], loss[k], n_token, 0);
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
