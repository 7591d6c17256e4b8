/* SPDX-License-Identifier: Apache-2.0 */
/* Mistral (Jiang et al., 2023): LLaMA with a window in every layer; later releases have none (sliding_window null). */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_NEEDED_FACT(experts, "num_local_experts"), SH_USUAL_FACT(used, 1, 2, "num_experts_per_tok"),
    SH_NEEDED_FACT(expert_ffn, "intermediate_size"), {.json = {NULL}}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of Mistral */
    return sh_config_window(c, 4096, a, e);
}

int sh_window_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 0, a, e);
}

const struct sh_family sh_family_mistral = {
    .name = "mistral", .model_types = SH_WORDS("mistral"),
    .architectures = SH_WORDS("MistralForCausalLM", "MistralModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &sh_llama_gguf, .knows = " sliding_window ",
    .shape = shape, .finish = sh_config_whole_rope};

/* Mixtral (Jiang et al., 2024): Mistral with eight feed-forward blocks, of which each token uses two. Counted only. */
const struct sh_family sh_family_mixtral = {
    .name = "mixtral", .model_types = SH_WORDS("mixtral"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = facts, .knows = " sliding_window ", .shape = sh_window_shape};
