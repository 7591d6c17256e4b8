/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): layer norm, both blocks read the layer's
 * input, a part of each head turns, q, k and v of a head lie one after another in one matrix. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."
#define QKV_W LAYER "attention.query_key_value.weight"
#define QKV_B LAYER "attention.query_key_value.bias"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "rotary_pct"),
    SH_REAL_KEY(rope.base, 1e12, "rotary_emb_base"),
    SH_FLAG_KEY(SH_PARALLEL, "use_parallel_residual"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    {SH_TOK_EMBED, "embed_in.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_FINAL_NORM_W, "final_layer_norm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_FINAL_NORM_B, "final_layer_norm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "embed_out.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "input_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_ATTN_NORM_B, LAYER "input_layernorm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, QKV_W, SH_DIM_Q, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_Q_B, QKV_B, SH_ONE, SH_DIM_Q, SH_HAS_BIAS, 0, SH_INTERLEAVED},
    {SH_K_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_K_B, QKV_B, SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, SH_INTERLEAVED},
    {SH_V_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_V_B, QKV_B, SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, SH_INTERLEAVED},
    {SH_O_W, LAYER "attention.dense.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_O_B, LAYER "attention.dense.bias", SH_ONE, SH_DIM_MODEL, SH_HAS_OUT_BIAS, 0, 0},
    {SH_MLP_NORM_W, LAYER "post_attention_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_B, LAYER "post_attention_layernorm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_W, LAYER "mlp.dense_h_to_4h.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_B, LAYER "mlp.dense_h_to_4h.bias", SH_ONE, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_W, LAYER "mlp.dense_4h_to_h.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_B, LAYER "mlp.dense_4h_to_h.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

const struct sh_family sh_family_gpt_neox = {
    .name = "gpt_neox",
    .model_types = SH_WORDS("gpt_neox"),
    .architectures = SH_WORDS("GPTNeoXForCausalLM", "GPTNeoXModel"),
    .prefixes = SH_WORDS("gpt_neox.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 0.25f, .rope = {.base = 10000},
              .flags = SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM |
                       SH_PARALLEL},
    .keys = keys,
    .params = params,
    .finish = sh_config_classic_rope,
};
