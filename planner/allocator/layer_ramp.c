/* SPDX-License-Identifier: Apache-2.0 */
/* See layer_ramp.h. */
#include "planner/allocator/layer_ramp.h"

#include <stdlib.h>

#include "planner/allocator/apportion.h"
#include "src/base/mem.h"

void sh_layer_weights(const struct sh_allocation *a, const double *weight, double base, int *budget)
{
    int n = a->n_layer * a->n_head;
    double *of_head = xcalloc((size_t)n, sizeof *of_head);
    for (int i = 0; i < n; i++)
        of_head[i] = weight[i / a->n_head];
    sh_apportion(of_head, n, base, a->floor, a->n_token, sh_allocation_total(a), budget);
    free(of_head);
}

void sh_layer_ramp(const struct sh_allocation *a, double beta, int direction, int *budget)
{
    double *weight = xcalloc((size_t)a->n_layer, sizeof *weight), last = 1 / beta, first = 2 - last;
    for (int l = 0; l < a->n_layer; l++) {
        int at = direction == SH_RAMP_DOWN ? l : a->n_layer - 1 - l;
        weight[l] = a->n_layer > 1 ? first + (last - first) * at / (a->n_layer - 1) : 1;
    }
    sh_layer_weights(a, weight, a->floor - 1, budget);
    free(weight);
}
