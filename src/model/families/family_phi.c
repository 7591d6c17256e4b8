/* SPDX-License-Identifier: Apache-2.0 */
/* Phi 1, 1.5 and 2 (Gunasekar et al., 2023; Li et al., 2023): both blocks read one layer norm, a part of each head
 * rotates, biases everywhere, even in the head. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_FLAG_KEY(SH_HAS_QK_NORM, "qk_layernorm"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_VECTOR(HEAD_B, "lm_head.bias", VOCAB, 0, SH_WHOLE_NAME),
    SH_NORM_PAIR(FINAL_NORM, "final_layernorm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0),
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, 0, 0),
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, 0, 0),
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, 0, 0), SH_HEAD_NORM_PAIR(Q_NORM, "self_attn.q_layernorm"),
    SH_HEAD_NORM_PAIR(K_NORM, "self_attn.k_layernorm"),
    SH_LINEAR(O, SH_LAYER "self_attn.dense", MODEL, Q, 0, 0),
    SH_LINEAR(UP, SH_LAYER "mlp.fc1", FF, MODEL, 0, 0), SH_LINEAR(DOWN, SH_LAYER "mlp.fc2", MODEL, FF, 0, 0),
    {.name = NULL}};

const struct sh_family sh_family_phi = {
    .special = "parallel blocks on one norm, partial rotation",
    .name = "phi", .model_types = SH_WORDS("phi"), .architectures = SH_WORDS("PhiForCausalLM", "PhiModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_GELU_TANH, .max_pos = 2048, .rotary_share = 0.5f,
              .flags = SH_GPT_FLAGS | SH_PARALLEL | SH_ONE_NORM | SH_HAS_HEAD_BIAS},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_phi, .finish = sh_config_classic_rope};
