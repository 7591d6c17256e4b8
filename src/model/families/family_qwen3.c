/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 3 (Yang et al., 2025): Qwen 2 without the biases, with a norm on every query and key. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_gguf_form gguf = {
    .arch = "qwen3", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD};

const struct sh_family sh_family_qwen3 = {
    .name = "qwen3", .model_types = SH_WORDS("qwen3"), .counted_types = SH_WORDS("qwen3_vl_text", "qwen3_vl"),
    .architectures = SH_WORDS("Qwen3ForCausalLM", "Qwen3Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf, .knows = SH_QWEN_KNOWS, .shape = sh_qwen_shape,
    .finish = sh_config_whole_rope};
