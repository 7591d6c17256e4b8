/* SPDX-License-Identifier: Apache-2.0 */
/* StreamingLLM (Xiao et al. 2023): the first tokens, which take the attention that has nowhere else
 * to go, and the newest ones. Original positions; the engine's --positions cache is the paper's. */
#include "planner/policy/policy.h"

static const struct sh_knob knobs[] = {SH_KNOB_SINKS(4), {0}};

const struct sh_policy sh_policy_streaming = {
    .name = "streaming",
    .summary = "StreamingLLM: keeps the first tokens (sinks) and the newest",
    .knobs = knobs,
    .is_stack = sh_policy_always,
    .device = sh_policy_by_position,
};
