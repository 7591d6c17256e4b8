/* SPDX-License-Identifier: Apache-2.0 */
/* gpt-oss (OpenAI, 2025): a window in every other layer, experts with biases, a sink for each head. Its memory is
 * counted. */
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 128, "sliding_window"), SH_NEEDED_FACT(experts, "num_local_experts"),
    SH_USUAL_FACT(used, 1, 4, "num_experts_per_tok", "experts_per_token"),
    SH_NEEDED_FACT(expert_ffn, "intermediate_size"), SH_FIXED_FACT(router_bias, 1), SH_FIXED_FACT(sinks, 1),
    {.json = {NULL}}};

const struct sh_family sh_family_gpt_oss = {
    .name = "gpt_oss", .model_types = SH_WORDS("gpt_oss"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS},
    .facts = facts, .pattern = "LG"};
