/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/layer_losses.h"

static double within(double x, double least, double most)
{
    return x < least ? least : x < most ? x : most;
}

static double sum(const double *x, int n)
{
    double all = 0;
    for (int i = 0; i < n; i++)
        all += x[i];
    return all;
}

void sh_layer_losses_aim(double *loss, const double *change, int n_layer, int n, double tokens)
{
    const double variance = 0.25 * 0.25;
    double all = sum(loss, n_layer * n), prior = 2 * n / (tokens * variance);
    double usual = all > 0 ? within(sum(change, n_layer * n) / all, 0.5, 1.2) : 1;
    for (int l = 0; l < n_layer; l++) {
        double kl = sum(loss + l * n, n), more = sum(change + l * n, n);
        for (int i = 0; i < n; i++)
            loss[l * n + i] *= within((more + usual * prior) / (kl + prior), 0.1, 2);
    }
}
