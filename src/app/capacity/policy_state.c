/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_ask.h: what a policy stores, as the engine's own caches do. */
#include <math.h>
#include <stdlib.h>

#include "planner/policy/state.h"
#include "src/app/capacity/capacity_ask.h"
#include "src/app/capacity/capacity_quality.h"

static int whole(double tokens)
{
    return tokens >= 1 ? (int)fmin(ceil(tokens), 1 << 30) : 1;
}

/* Layers may differ: some policies keep all tokens, and so no state, in the first ones. */
uint64_t sh_capacity_policy_state(const struct sh_policy_spec *p, const struct sh_kv_shape *s, double kept,
                                  uint64_t length)
{
    size_t bytes = 0, slots = (size_t)whole(kept) * (size_t)s->f.layers;
    for (int l = 0; l < s->f.layers; l++)
        bytes += sh_state_of_head(p, l, s->f.layers, sh_kv_shape_most(s).width, whole(kept), whole((double)length));
    return slots ? (bytes + slots - 1) / slots : 0;
}

uint64_t sh_capacity_plan_state(const struct sh_plan *p, const struct sh_kv_shape *s, uint64_t length)
{
    int n_token = whole((double)length);
    size_t bytes = 0, slots = 0;
    for (int l = 0; l < p->n_layer; l++)
        for (int h = 0; h < p->heads[l]; h++) {
            int kept = sh_plan_tokens(p, l, h, n_token);
            bytes += sh_state_of_head(&p->policy, l, p->n_layer, sh_kv_shape_most(s).width, kept, n_token);
            slots += (size_t)kept;
        }
    return slots ? (bytes + slots - 1) / slots : 0;
}

void sh_capacity_add_state(const struct sh_capacity_args *a, const struct sh_plan *plan,
                           const struct sh_quality_point *measured, const struct sh_kv_shape *s, uint64_t length,
                           struct sh_kv_rule *rule)
{
    struct sh_policy_spec spec;
    struct sh_err ignored;
    if (a->policy_state && plan) {
        rule->state = sh_capacity_plan_state(plan, s, length);
    } else if (a->policy_state && measured) {
        char *text = sh_quality_policy(measured);
        if (!sh_policy_parse(text, &spec, &ignored))
            rule->state = sh_capacity_policy_state(&spec, s, sh_quality_kept(measured, length), length);
        free(text);
    }
}
