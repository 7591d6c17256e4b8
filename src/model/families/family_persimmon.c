/* SPDX-License-Identifier: Apache-2.0 */
/* Persimmon (Adept, 2023): layer norms, also on queries and keys, half of each head rotates, a squared ReLU without
 * gate, q, k and v of a head one after another in one matrix. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define QKV SH_LAYER "self_attn.query_key_value"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_FLAG_KEY(SH_HAS_QK_NORM, "qk_layernorm"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_PAIR(FINAL_NORM, "final_layernorm", 0),
    SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0), SH_LINEAR(Q, QKV, Q, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(K, QKV, KV, MODEL, 0, SH_INTERLEAVED), SH_LINEAR(V, QKV, KV, MODEL, 0, SH_INTERLEAVED),
    SH_HEAD_NORM_PAIR(Q_NORM, "self_attn.q_layernorm"), SH_HEAD_NORM_PAIR(K_NORM, "self_attn.k_layernorm"),
    SH_LINEAR(O, SH_LAYER "self_attn.dense", MODEL, Q, 0, 0),
    SH_NORM_PAIR(MLP_NORM, SH_LAYER "post_attention_layernorm", 0),
    SH_LINEAR(UP, SH_LAYER "mlp.dense_h_to_4h", FF, MODEL, 0, 0),
    SH_LINEAR(DOWN, SH_LAYER "mlp.dense_4h_to_h", MODEL, FF, 0, 0), {.name = NULL}};

const struct sh_family sh_family_persimmon = {
    .special = "squared ReLU, layer norms of queries and keys, partial rotation",
    .name = "persimmon", .model_types = SH_WORDS("persimmon"),
    .architectures = SH_WORDS("PersimmonForCausalLM", "PersimmonModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f,
              .rope = {.base = 25000}, .act = SH_ACT_RELU2, .max_pos = 16384, .rotary_share = 0.5f,
              .flags = SH_GPT_FLAGS | SH_HAS_QK_NORM},
    .keys = keys, .params = params, .finish = sh_config_classic_rope};
