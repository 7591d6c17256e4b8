/* SPDX-License-Identifier: Apache-2.0 */
/* More to layers where the persistence of importance was measured to be lower: a layer's budget is mean * (c + 1 -
 * ratio) / (mean over layers of c + 1 - ratio), within the limits. The rule is the one that Scissorhands states in
 * words (arXiv 2305.17118, section 4.1), with the measured ratios of this model. The literal ratio (alpha 1/t, every
 * pair) is the paper's; alpha and recent choose another of planner/theory/persistence.h. */
#include <stdlib.h>

#include "planner/allocator/allocator.h"
#include "src/base/mem.h"

static const struct sh_knob knobs[] = {
    {"c", 0.1, 0, 1e6, NULL, "added to 1 - ratio; the larger, the more even", 0},
    {"alpha", 1, 1, 100, NULL, "a score above alpha / t is pivotal", 1},
    {"recent", 0, 0, 1 << 20, NULL, "only pairs at least this many tokens apart", 1},
    {0}};

static void share(const struct sh_allocation *a, const double *knob, int *budget)
{
    double *weight = xcalloc((size_t)a->n_layer, sizeof *weight);
    for (int l = 0; l < a->n_layer; l++)
        weight[l] = knob[0] + 1 - a->persistence[l];
    sh_layer_weights(a, weight, 0, budget);
    free(weight);
}

const struct sh_allocator sh_allocator_persistence = {
    .name = "persistence",
    .summary = "more to layers with lower measured persistence",
    .knobs = knobs,
    .needs = SH_EVIDENCE_PERSISTENCE,
    .share = share,
};
