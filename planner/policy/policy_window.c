/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that look at positions only: full, window and streaming. */
#include "planner/policy/policy.h"

/* Full evicts nothing, whatever the budget: the reference. kept_slots.c gives it room for every token. */
static int keeps_all(const double *knob, int layer)
{
    (void)knob;
    (void)layer;
    return 1;
}

const struct sh_policy sh_policy_full = {
    .name = "full",
    .summary = "keeps every token",
    .keeps_all = keeps_all,
    .device = sh_policy_by_position,
};

/* The newest tokens: what every other policy must beat. */
const struct sh_policy sh_policy_window = {
    .name = "window",
    .summary = "keeps the newest tokens",
    .is_stack = sh_policy_always,
    .device = sh_policy_by_position,
};

/* StreamingLLM (Xiao et al. 2023): the first tokens, which take the attention that has nowhere else to go, and the
 * newest ones. Original positions; the engine's --positions cache is the paper's. */
static const struct sh_knob streaming_knobs[] = {SH_KNOB_SINKS(4), {0}};

const struct sh_policy sh_policy_streaming = {
    .name = "streaming",
    .summary = "keeps the first tokens (sinks) and the newest, as StreamingLLM does",
    .knobs = streaming_knobs,
    .is_stack = sh_policy_always,
    .device = sh_policy_by_position,
};
