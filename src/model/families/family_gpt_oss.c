/* SPDX-License-Identifier: Apache-2.0 */
/* gpt-oss (OpenAI, 2025): a window in every other layer, experts with biases, a sink for each head. Its memory is
 * counted. */
#include <stdio.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 128, "sliding_window"),
    SH_NEEDED_FACT(experts, "num_local_experts"),
    SH_USUAL_FACT(used, 1, 4, "num_experts_per_tok", "experts_per_token"),
    SH_NEEDED_FACT(expert_ffn, "intermediate_size"),
    {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->router_bias = f->sinks = 1;
    snprintf(f->pattern, sizeof f->pattern, "LG");
    return sh_facts_layer_types(c, f, e) < 0 ? -1 : 0;
}

const struct sh_family sh_family_gpt_oss = {
    .name = "gpt_oss",
    .model_types = SH_WORDS("gpt_oss"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS},
    .facts = facts,
    .knows = " sliding_window layer_types num_local_experts ",
    .count = count,
};
