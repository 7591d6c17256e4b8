/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the factors of a gated feed-forward block. SiLU is never below -0.28, so clipping to [-limit, limit] with a
 * larger limit is clipping from above only. */
#include "src/model/layers/layer_parts.h"

void sh_limits_apply(const struct sh_layer *l, const struct sh_limits *limits, struct sh_gate *gate)
{
    struct sh_gate step = {.out = gate->gate, .gate = gate->gate, .act = gate->act};
    l->b->gate(l->d, &step);
    step.act = SH_ACT_CLIP;
    step.knob[0] = limits->gate;
    l->b->gate(l->d, &step);
    step.out = step.gate = gate->up;
    step.knob[0] = limits->up;
    l->b->gate(l->d, &step);
    gate->act = SH_ACT_NONE;
}
