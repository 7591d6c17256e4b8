/* SPDX-License-Identifier: Apache-2.0 */
/* More to heads whose attention is spread out: budgets in proportion to the mean entropy of the head's rows, within the
 * limits. */
#include "planner/allocator/allocator.h"

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    int n = sh_allocation_first(a, a->n_layer);
    (void)knob;
    sh_apportion(a->entropy, n, 0, a->floor, a->n_token, (long long)n * a->mean, budget);
}

const struct sh_allocator sh_allocator_entropy = {
    .name = "entropy",
    .summary = "more to heads whose attention is spread out",
    .needs = SH_EVIDENCE_ENTROPY,
    .share = share,
};
