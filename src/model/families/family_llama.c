/* SPDX-License-Identifier: Apache-2.0 */
/* LLaMA 1 to 3 (Touvron et al., 2023; Dubey et al., 2024): RMS norm, gated SiLU, rotary positions, from the
 * second on fewer KV heads than heads, from the third on scaled frequencies. Its tables serve Mistral and
 * Qwen, too: what they add is optional here. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."

const char *const sh_llama_prefixes[] = {"model.", "", NULL};

const struct sh_key sh_llama_keys[] = {
    SH_ACT_KEY("hidden_act"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "partial_rotary_factor"),
    {.json = {NULL}}};

const struct sh_param sh_llama_params[] = {
    {SH_TOK_EMBED, "embed_tokens.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_FINAL_NORM_W, "norm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "input_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, LAYER "self_attn.q_proj.weight", SH_DIM_Q, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_B, LAYER "self_attn.q_proj.bias", SH_ONE, SH_DIM_Q, SH_HAS_BIAS, 0, 0},
    {SH_K_W, LAYER "self_attn.k_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_K_B, LAYER "self_attn.k_proj.bias", SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, 0},
    {SH_V_W, LAYER "self_attn.v_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_V_B, LAYER "self_attn.v_proj.bias", SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, 0},
    {SH_Q_NORM_W, LAYER "self_attn.q_norm.weight", SH_ONE, SH_DIM_HEAD, SH_HAS_QK_NORM, 0, 0},
    {SH_K_NORM_W, LAYER "self_attn.k_norm.weight", SH_ONE, SH_DIM_HEAD, SH_HAS_QK_NORM, 0, 0},
    {SH_O_W, LAYER "self_attn.o_proj.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_O_B, LAYER "self_attn.o_proj.bias", SH_ONE, SH_DIM_MODEL, SH_HAS_OUT_BIAS, 0, 0},
    {SH_MLP_NORM_W, LAYER "post_attention_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_GATE_W, LAYER "mlp.gate_proj.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_GATE_B, LAYER "mlp.gate_proj.bias", SH_ONE, SH_DIM_FF, SH_HAS_MLP_BIAS, 0, 0},
    {SH_UP_W, LAYER "mlp.up_proj.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_B, LAYER "mlp.up_proj.bias", SH_ONE, SH_DIM_FF, SH_HAS_MLP_BIAS, 0, 0},
    {SH_DOWN_W, LAYER "mlp.down_proj.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_B, LAYER "mlp.down_proj.bias", SH_ONE, SH_DIM_MODEL, SH_HAS_MLP_BIAS, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

const struct sh_family sh_family_llama = {
    .name = "llama",
    .model_types = SH_WORDS("llama"),
    .architectures = SH_WORDS("LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys,
    .params = sh_llama_params,
    .finish = sh_config_whole_rope,
};
