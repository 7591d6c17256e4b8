/* SPDX-License-Identifier: Apache-2.0 */
/* BLOOM (Le Scao et al., 2022): layer norm, one more after the embedding, ALiBi in place of positions, q, k
 * and v of a head one after another in one matrix, tanh GELU. Nothing limits the length; max_pos is that of
 * training. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."
#define QKV_W LAYER "self_attention.query_key_value.weight"
#define QKV_B LAYER "self_attention.query_key_value.bias"

static const struct sh_key keys[] = {
    SH_COUNT_KEY(max_pos, 1e8, "seq_length"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    {SH_TOK_EMBED, "word_embeddings.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_EMBED_NORM_W, "word_embeddings_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_EMBED_NORM_B, "word_embeddings_layernorm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_FINAL_NORM_W, "ln_f.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_FINAL_NORM_B, "ln_f.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "input_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_ATTN_NORM_B, LAYER "input_layernorm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, QKV_W, SH_DIM_Q, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_Q_B, QKV_B, SH_ONE, SH_DIM_Q, 0, 0, SH_INTERLEAVED},
    {SH_K_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_K_B, QKV_B, SH_ONE, SH_DIM_KV, 0, 0, SH_INTERLEAVED},
    {SH_V_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_INTERLEAVED},
    {SH_V_B, QKV_B, SH_ONE, SH_DIM_KV, 0, 0, SH_INTERLEAVED},
    {SH_O_W, LAYER "self_attention.dense.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_O_B, LAYER "self_attention.dense.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_W, LAYER "post_attention_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_B, LAYER "post_attention_layernorm.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_W, LAYER "mlp.dense_h_to_4h.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_B, LAYER "mlp.dense_h_to_4h.bias", SH_ONE, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_W, LAYER "mlp.dense_4h_to_h.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_B, LAYER "mlp.dense_4h_to_h.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int normed_residual = 0;
    (void)a;
    if (sh_config_flag(c, "apply_residual_connection_post_layernorm", &normed_residual, e))
        return -1;
    if (normed_residual)
        return sh_config_refuse(c, "apply_residual_connection_post_layernorm", "residuals from in front of the norms",
                                e);
    return 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    f->embed_norm = 1;
    return 0;
}

const struct sh_family sh_family_bloom = {
    .name = "bloom",
    .model_types = SH_WORDS("bloom"),
    .architectures = SH_WORDS("BloomForCausalLM", "BloomModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ALIBI, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 2048,
              .flags = SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE |
                       SH_HAS_FINAL_NORM},
    .keys = keys,
    .params = params,
    .shape = sh_four_wide,
    .finish = finish,
    .count = count,
};
