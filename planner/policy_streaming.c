/* SPDX-License-Identifier: Apache-2.0 */
/* StreamingLLM (Xiao et al. 2023): the first tokens, which take the attention that has nowhere else
 * to go, and the newest ones. Original positions; the engine's --positions cache is the paper's. */
#include "planner/policy.h"

static int is_stack(const double *knob)
{
    (void)knob;
    return 1;
}

static const struct sh_knob knobs[] = {
    {"sinks", 4, 0, 1 << 20, NULL, "first tokens that never leave", 1},
    {0}};

const struct sh_policy sh_policy_streaming = {
    .name = "streaming",
    .summary = "StreamingLLM: keeps the first tokens (sinks) and the newest",
    .knobs = knobs,
    .is_stack = is_stack,
};
