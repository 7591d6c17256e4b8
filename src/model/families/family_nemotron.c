/* SPDX-License-Identifier: Apache-2.0 */
/* Nemotron and Minitron (NVIDIA, 2024): LLaMA with layer norms whose weights are stored less 1, a squared ReLU without
 * gate, and a part of each head that rotates. Jais 2 (Inception, 2025): the same with plain norms, biases and whole
 * heads that rotate. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_PAIR(FINAL_NORM, "norm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0),
    SH_LLAMA_ATTENTION, SH_NORM_PAIR(MLP_NORM, SH_LAYER "post_attention_layernorm", 0), SH_LLAMA_PLAIN_FEED,
    {.name = NULL}};

const struct sh_family sh_family_nemotron = {
    .special = "squared ReLU, layer norms with 1 + w, partial rotation",
    .name = "nemotron", .model_types = SH_WORDS("nemotron"),
    .architectures = SH_WORDS("NemotronForCausalLM", "NemotronModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_RELU2, .max_pos = 4096, .rotary_share = 0.5f,
              .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_NORM_PLUS_ONE},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_nemotron, .finish = sh_config_classic_rope};

static const struct sh_key keys_jais[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

const struct sh_family sh_family_jais2 = {
    .special = "squared ReLU, layer norms, biases",
    .name = "jais2", .model_types = SH_WORDS("jais2"), .architectures = SH_WORDS("Jais2ForCausalLM", "Jais2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_RELU2, .max_pos = 8192, .rotary_share = 1,
              .flags = SH_GPT_FLAGS},
    .keys = keys_jais, .params = params, .gguf = &sh_gguf_jais2, .finish = sh_config_whole_rope};
