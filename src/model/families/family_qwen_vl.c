/* SPDX-License-Identifier: Apache-2.0 */
/* The text parts of Qwen2-VL, Qwen2.5-VL (2024, 2025), Qwen3-VL (2025) and Qwen3-VL with experts, without the vision
 * part: Qwen 2 and 3 with other defaults. A token has three positions, which are equal for text. Older files have the
 * text part's keys outside text_config. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define KNOWS " sliding_window use_sliding_window max_window_layers layer_types "

#define TRAITS SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD
static const struct sh_gguf_form gguf_2 = {
    .arch = "qwen2vl", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = TRAITS | SH_GGUF_QKV_BIAS};
static const struct sh_gguf_form gguf_3 = {
    .arch = "qwen3vl", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = TRAITS};

const struct sh_family sh_family_qwen2_vl = {
    .special = "text of Qwen2-VL and 2.5-VL: Qwen 2",
    .name = "qwen2_vl", .model_types = SH_WORDS("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"),
    .architectures = SH_WORDS("Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
                              "Qwen2VLTextModel", "Qwen2_5_VLTextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 1e6f), .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf_2, .knows = KNOWS,
    .shape = sh_qwen2_shape, .finish = sh_config_whole_rope};

const struct sh_family sh_family_qwen3_vl = {
    .special = "text of Qwen3-VL: Qwen 3",
    .name = "qwen3_vl", .model_types = SH_WORDS("qwen3_vl", "qwen3_vl_text"),
    .architectures = SH_WORDS("Qwen3VLForConditionalGeneration", "Qwen3VLTextModel"), .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 5e5f), .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf_3, .shape = sh_qwen_plain_shape,
    .finish = sh_config_whole_rope};

/* Experts in stacks, as published [expert, in, out], gate before up, or one by one in quantised files; their weights
 * always sum to 1. */
#define STACK (SH_TRANSPOSED | SH_EITHER_WAY)
static const struct sh_param experts[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, STACK),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, STACK),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, STACK), SH_LLAMA_EXPERTS, {.name = NULL}};

static int shape_experts(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_qwen_mixture_shape(a, c, e))
        return -1;
    a->flags |= SH_MIX_NORMED;
    return 0;
}

const struct sh_family sh_family_qwen3_vl_moe = {
    .special = "text of Qwen3-VL with experts: Qwen 3 MoE",
    .name = "qwen3_vl_moe", .model_types = SH_WORDS("qwen3_vl_moe", "qwen3_vl_moe_text"),
    .architectures = SH_WORDS("Qwen3VLMoeForConditionalGeneration", "Qwen3VLMoeTextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 5e5f), .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_qwen_mixture_keys, .params = experts,
    .gguf = &sh_gguf_qwen3_vl_moe, .knows = " decoder_sparse_step mlp_only_layers ",
    .shape = shape_experts, .finish = sh_config_whole_rope};

/* ---- the text parts of Qwen2.5-Omni (2025) and Qwen3-Omni: what is called the thinker ---- */

static const struct sh_param one_by_one[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, {.name = NULL}};

static int shape_omni(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_null(c, "num_key_value_heads"))
        a->n_kv_head = a->n_head;
    return sh_qwen2_shape(a, c, e);
}

const struct sh_family sh_family_qwen2_5_omni = {
    .special = "text of Qwen2.5-Omni: Qwen 2",
    .name = "qwen2_5_omni", .model_types = SH_WORDS("qwen2_5_omni_text"),
    .architectures = SH_WORDS("Qwen2_5OmniThinkerTextModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 1e6f), .n_kv_head = 4, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = sh_llama_keys, .params = sh_llama_params, .knows = KNOWS, .shape = shape_omni,
    .finish = sh_config_whole_rope};

const struct sh_family sh_family_qwen3_omni_moe = {
    .special = "text of Qwen3-Omni: Qwen 3 MoE",
    .name = "qwen3_omni_moe", .model_types = SH_WORDS("qwen3_omni_moe_text"),
    .architectures = SH_WORDS("Qwen3OmniMoeThinkerTextModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 1e6f), .n_kv_head = 4,
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED},
    .keys = sh_qwen_mixture_keys, .params = one_by_one,
    .only = SH_WORDS("sliding_window=null", "use_sliding_window=false", "shared_expert_intermediate_size=0",
                     "use_qk_norm=true"),
    .knows = " sliding_window decoder_sparse_step mlp_only_layers ",
    .shape = sh_qwen_mixture_shape, .finish = sh_config_whole_rope};
