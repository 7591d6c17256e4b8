/* SPDX-License-Identifier: Apache-2.0 */
/* Value-aware token pruning (VATP, Guo et al. 2024): a token moves the output by its attention times its value, so its
 * score is the attention received so far times |v|_1. The first token, a sink with a value near zero, is protected by
 * the knob `sinks`. */
#include <math.h>

#include "planner/policy/vectors.h"

struct state {
    float *received, *size;             /* [capacity]; size: |v|_1 */
};

static const struct sh_array arrays[] = {
    SH_ARRAY(received, SH_PER_SLOT, sizeof(float)),
    SH_ARRAY(size, SH_PER_SLOT, sizeof(float)),
    {0}};

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct state *s = state;
    const float *v = sh_cache_row(c, c->v, c->newest);
    float norm = 0;
    for (int i = 0; i < c->d_head; i++)
        norm += fabsf(v[i]);
    s->size[c->newest] = norm;
    sh_add_scaled(s->received, t->row, 1, c->n_slot);
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct state *s = state;
    (void)t;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = s->received[i] * s->size[i];
    return scratch;
}

static const struct sh_knob knobs[] = {SH_KNOB_SINKS(1), SH_KNOB_RECENT(0), {0}};

const struct sh_policy sh_policy_vatp = {
    .name = "vatp",
    .summary = "drops the token whose attention so far, times the size of its value, is least",
    .knobs = knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_VALUES,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct state), .arrays = arrays,
    .observe = observe, .score = score,
};
