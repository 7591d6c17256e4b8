/* SPDX-License-Identifier: Apache-2.0 */
/* More to heads whose attention is spread out: budgets in proportion to the mean entropy of the head's rows,
 * within the limits. */
#include <stdlib.h>

#include "planner/allocator/apportion.h"
#include "src/base/mem.h"

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int n = a->n_layer * a->n_head;
    double *weight = xcalloc((size_t)n, sizeof *weight), sum = 0;
    (void)knob;
    for (int i = 0; i < n; i++)
        sum += weight[i] = a->entropy[i];
    for (int i = 0; i < n && sum <= 0; i++)             /* every row on one key */
        weight[i] = 1;
    sh_apportion(weight, n, 0, a->floor, a->n_token, (long long)n * a->mean, budget);
    free(weight);
}

const struct sh_allocator sh_allocator_entropy = {
    .name = "entropy",
    .summary = "more to heads whose attention is spread out",
    .needs = SH_EVIDENCE_ENTROPY,
    .share = share,
};
