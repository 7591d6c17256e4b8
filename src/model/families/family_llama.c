/* SPDX-License-Identifier: Apache-2.0 */
/* LLaMA 1 to 3 (Touvron et al., 2023; Dubey et al., 2024): RMS norm, gated SiLU, rotary positions, from the
 * second on fewer KV heads than heads, from the third on scaled frequencies. Its tables serve Mistral and
 * Qwen, too: what they add is optional here. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."
#define FIELD(name) offsetof(struct sh_arch, name)

static const char *const model_types[] = {"llama", NULL};
static const char *const architectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel", NULL};
const char *const sh_llama_prefixes[] = {"model.", "", NULL};

const struct sh_key sh_llama_keys[] = {
    {{"num_hidden_layers"}, SH_KEY_COUNT, FIELD(n_layer), 0, 1, 1e4},
    {{"num_attention_heads"}, SH_KEY_COUNT, FIELD(n_head), 0, 1, 1e5},
    {{"num_key_value_heads"}, SH_KEY_COUNT, FIELD(n_kv_head), 0, 0, 1e5},
    {{"head_dim"}, SH_KEY_COUNT, FIELD(d_head), 0, 0, 1e5},
    {{"hidden_size"}, SH_KEY_COUNT, FIELD(d_model), 0, 1, 1e7},
    {{"intermediate_size"}, SH_KEY_COUNT, FIELD(d_ff), 0, 1, 1e8},
    {{"vocab_size"}, SH_KEY_COUNT, FIELD(n_vocab), 0, 1, 1e8},
    {{"max_position_embeddings"}, SH_KEY_COUNT, FIELD(max_pos), 0, 0, 1e8},
    {{"hidden_act"}, SH_KEY_ACT, FIELD(act), 0, 0, 0},
    {{"rms_norm_eps"}, SH_KEY_REAL, FIELD(norm_eps), 0, 0, 1},
    {{"rope_theta"}, SH_KEY_REAL, FIELD(rope.base), 0, 0, 1e12},
    {{"rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor", "partial_rotary_factor"},
     SH_KEY_REAL, FIELD(rotary_share), 0, 0, 1},
    {{"initializer_range"}, SH_KEY_REAL, FIELD(init_std), 0, 0, 100},
    {{"attention_bias"}, SH_KEY_FLAG, 0, SH_HAS_BIAS | SH_HAS_OUT_BIAS, 0, 0},
    {{"mlp_bias"}, SH_KEY_FLAG, 0, SH_HAS_MLP_BIAS, 0, 0},
    {{"tie_word_embeddings"}, SH_KEY_FLAG, 0, SH_TIED_HEAD, 0, 0},
    {{"dtype", "torch_dtype"}, SH_KEY_TYPE, FIELD(type), 0, 0, 0},
    {{NULL}, SH_KEY_COUNT, 0, 0, 0, 0}};

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
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys,
    .params = sh_llama_params,
    .finish = sh_config_whole_rope,
};
