/* SPDX-License-Identifier: Apache-2.0 */
/* StableLM (Stability AI, 2023): LLaMA with layer norms, rotation of a part of each head, and biases on q, k and v. In
 * the 12B of StableLM 2, both blocks read one norm, and queries and keys are normed, each head with weights of its
 * own. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_FLAG_KEY(SH_HAS_BIAS, "use_qkv_bias"), SH_FLAG_KEY(SH_PARALLEL | SH_ONE_NORM, "use_parallel_residual"),
    SH_FLAG_KEY(SH_HAS_QK_NORM | SH_QK_NORM_EACH, "qk_layernorm"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_PAIR(FINAL_NORM, "norm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0),
    SH_LLAMA_ATTENTION,
    SH_VECTORS(Q_NORM_W, SH_LAYER "self_attn.q_layernorm.norms.@.weight", HEAD, HEADS, SH_HAS_QK_NORM),
    SH_VECTORS(K_NORM_W, SH_LAYER "self_attn.k_layernorm.norms.@.weight", HEAD, KV_HEADS, SH_HAS_QK_NORM),
    SH_NORM_PAIR_UNLESS(MLP_NORM, SH_LAYER "post_attention_layernorm", SH_ONE_NORM), SH_LLAMA_FEED, {.name = NULL}};

const struct sh_family sh_family_stablelm = {
    .special = "layer norms, rotation of a quarter of each head",
    .name = "stablelm", .model_types = SH_WORDS("stablelm"),
    .architectures = SH_WORDS("StableLmForCausalLM", "StableLmModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_SILU, .max_pos = 4096, .rotary_share = 0.25f,
              .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_stablelm, .finish = sh_config_classic_rope};
