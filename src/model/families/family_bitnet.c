/* SPDX-License-Identifier: Apache-2.0 */
/* BitNet b1.58 (Ma et al., 2024): LLaMA with a squared ReLU gate and a norm before the last product of each block.
 * coded_join.c reads packed weights. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_NORM_WEIGHT(O_NORM, SH_LAYER "self_attn.attn_sub_norm.weight", Q, 0),
    SH_NORM_WEIGHT(DOWN_NORM, SH_LAYER "mlp.ffn_sub_norm.weight", FF, 0), {.name = NULL}};

const struct sh_family sh_family_bitnet = {
    .special = "norms before the last product of each block, squared ReLU",
    .name = "bitnet", .model_types = SH_WORDS("bitnet"), .architectures = SH_WORDS("BitNetForCausalLM", "BitNetModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 500000},
              .flags = SH_LLAMA_FLAGS | SH_HAS_SUB_NORM},
    .keys = sh_llama_keys, .params = params, .gguf = &sh_gguf_bitnet, .finish = sh_config_whole_rope};
