/* SPDX-License-Identifier: Apache-2.0 */
/* LLaMA 1 to 3 (Touvron et al., 2023; Dubey et al., 2024): RMS norm, gated SiLU, rotary positions; since LLaMA 2 fewer
 * KV heads than heads, since LLaMA 3 scaled frequencies. Mistral and Qwen share its tables; what they add is
 * optional. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

const char *const sh_llama_prefixes[] = {"model.", "", NULL};

const struct sh_key sh_llama_keys[] = {
    SH_ACT_KEY("hidden_act"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "partial_rotary_factor"),
    {.json = {NULL}}};

const struct sh_param sh_llama_params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    {.name = NULL}};

const struct sh_gguf_item sh_llama_items[] = {
    SH_GGUF_COUNT_ITEMS("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
                        "max_position_embeddings"),
    {.name = "attention.head_count_kv", .hub = "num_key_value_heads", .kind = SH_GGUF_COUNT, .optional = 1},
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    {.name = NULL}};

static const struct sh_gguf_item items[] = {
    SH_GGUF_COUNT_ITEMS("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
                        "max_position_embeddings"),
    {.name = "attention.head_count_kv", .hub = "num_key_value_heads", .kind = SH_GGUF_COUNT, .optional = 1},
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    {.name = "expert_count", .hub = "num_local_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = NULL}};

const struct sh_gguf_form sh_llama_gguf = {
    .arch = "llama", .items = items, .base_key = "rope_theta", .windowed_type = "mistral", .mixed_type = "mixtral",
    .traits = SH_GGUF_ROTARY | SH_GGUF_HEAD | SH_GGUF_WINDOW | SH_GGUF_FACTORS | SH_GGUF_IN_PAIRS};

const struct sh_family sh_family_llama = {
    .special = "RMS norms, gated SiLU, rotary positions",
    .name = "llama", .model_types = SH_WORDS("llama"),
    .architectures = SH_WORDS("LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &sh_llama_gguf, .finish = sh_config_whole_rope};

int sh_but_each(int layer, int period)
{
    return (layer + 1) % period != 0;
}

/* ---- InternLM 3 (Shanghai AI Laboratory, 2025) and IQuest-Coder (2026): LLaMA under names of their own ---- */

static const struct sh_key keys_intern[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_FLAG_KEY(SH_HAS_BIAS, "qkv_bias"), SH_FLAG_KEY(SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "bias"), {.json = {NULL}}};

const struct sh_family sh_family_internlm3 = {
    .special = "LLaMA's tables",
    .name = "internlm3", .model_types = SH_WORDS("internlm3"),
    .architectures = SH_WORDS("InternLM3ForCausalLM", "LlamaForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .n_kv_head = 2, .d_head = 128, .flags = SH_LLAMA_FLAGS},
    .keys = keys_intern, .params = sh_llama_params, .gguf = &sh_llama_gguf, .finish = sh_config_whole_rope};

const struct sh_family sh_family_iquestcoder = {
    .special = "LLaMA's tables",
    .name = "iquestcoder", .model_types = SH_WORDS("iquestcoder"),
    .architectures = SH_WORDS("IQuestCoderForCausalLM", "LlamaForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .n_kv_head = 8, .d_head = 128, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &sh_llama_gguf,
    .only = SH_WORDS("clip_qkv=null", "use_sliding_window=false"), .finish = sh_config_whole_rope};

/* ---- the text part of Emu3 (BAAI, 2024), which reads pictures as tokens ---- */

const struct sh_family sh_family_emu3 = {
    .special = "LLaMA's tables",
    .name = "emu3", .model_types = SH_WORDS("emu3_text_model"), .architectures = SH_WORDS("Emu3ForCausalLM"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 1e6f), .n_kv_head = 8, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .finish = sh_config_whole_rope};

/* ---- Mistral (Jiang et al., 2023): LLaMA with a window in every layer; later releases have none ---- */

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
    .special = "a window in every layer",
    .name = "mistral", .model_types = SH_WORDS("mistral"),
    .architectures = SH_WORDS("MistralForCausalLM", "MistralModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &sh_llama_gguf, .knows = " sliding_window ",
    .shape = shape, .finish = sh_config_whole_rope};
