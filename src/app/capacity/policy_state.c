/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_ask.h: what a policy stores, as the engine's own caches do. */
#include <math.h>
#include <stdlib.h>

#include "planner/policy/state.h"
#include "src/app/capacity/capacity_ask.h"
#include "src/app/capacity/capacity_quality.h"

static size_t head_bytes(const struct sh_policy_spec *p, const struct sh_kv_shape *s, int slots, int n_token)
{
    struct sh_policy_head h = {.policy = p->policy, .knob = p->knob, .n_layer = s->f.layers, .budget = slots,
                               .capacity = slots, .n_token = n_token, .d_head = sh_kv_shape_most(s).width};
    return sh_state_resident_bytes(p->policy, &h);
}

static int whole(double tokens)
{
    return tokens >= 1 ? (int)fmin(ceil(tokens), 1 << 30) : 1;
}

uint64_t sh_capacity_policy_state(const struct sh_policy_spec *p, const struct sh_kv_shape *s, double kept,
                                  uint64_t length)
{
    size_t slots = (size_t)whole(kept);
    return (head_bytes(p, s, (int)slots, whole((double)length)) + slots - 1) / slots;
}

uint64_t sh_capacity_plan_state(const struct sh_plan *p, const struct sh_kv_shape *s, uint64_t length)
{
    int n_token = whole((double)length);
    size_t bytes = 0, slots = 0;
    for (int l = 0; l < p->n_layer; l++)
        for (int h = 0; h < p->heads[l]; h++) {
            int kept = sh_plan_tokens(p, l, h, n_token);
            bytes += head_bytes(&p->policy, s, kept, n_token);
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
