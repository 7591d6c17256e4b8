/* SPDX-License-Identifier: Apache-2.0 */
/* Orion (OrionStar, 2024) and XVERSE (2023), whose code comes with their files: LLaMA, the first with layer norms.
 * Scaled rotations are refused, and so are XVERSE's mixtures of experts, which have the same model type. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_PAIR(FINAL_NORM, "norm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0),
    SH_NORM_PAIR(MLP_NORM, SH_LAYER "post_attention_layernorm", 0), SH_LLAMA_ATTENTION, SH_LLAMA_FEED, {.name = NULL}};

#define PLAIN \
    "rope_scaling=null", "rope_parameters=null", "partial_rotary_factor=null", "attention_bias=false", \
    "mlp_bias=false", "head_dim=null", "num_experts=null"

const struct sh_family sh_family_orion = {
    .special = "LLaMA with layer norms",
    .name = "orion", .model_types = SH_WORDS("orion"), .architectures = SH_WORDS("OrionForCausalLM", "OrionModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_SILU, .max_pos = 4096, .rotary_share = 1, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_orion, .only = SH_WORDS(PLAIN), .finish = sh_config_whole_rope};

const struct sh_family sh_family_xverse = {
    .special = "LLaMA's tables",
    .name = "xverse", .model_types = SH_WORDS("xverse"), .architectures = SH_WORDS("XverseForCausalLM", "XverseModel"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = sh_llama_params, .gguf = &sh_gguf_xverse, .only = SH_WORDS(PLAIN),
    .finish = sh_config_whole_rope};
