/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): layer norm, both blocks read the layer's input, a
 * part of each head is rotated, q, k and v of a head are consecutive in one matrix. GPT-NeoX Japanese (ABEJA, 2022):
 * one block after the other, and no biases but that of the last layer's attention. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "rotary_pct"),
    SH_REAL_KEY(rope.base, 1e12, "rotary_emb_base"),
    SH_FLAG_KEY(SH_PARALLEL, "use_parallel_residual"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embed_in.weight", VOCAB, EMBED, 0),
    SH_NORM_PAIR(FINAL_NORM, "final_layer_norm", 0),
    SH_HEAD_PARAM("embed_out.weight"),
    SH_NORM_PAIR(ATTN_NORM, LAYER "input_layernorm", 0),
    SH_LINEAR(Q, LAYER "attention.query_key_value", Q, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(K, LAYER "attention.query_key_value", KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(V, LAYER "attention.query_key_value", KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(O, LAYER "attention.dense", MODEL, Q, SH_HAS_OUT_BIAS, 0),
    SH_NORM_PAIR(MLP_NORM, LAYER "post_attention_layernorm", 0),
    SH_LINEAR(UP, LAYER "mlp.dense_h_to_4h", FF, MODEL, 0, 0),
    SH_LINEAR(DOWN, LAYER "mlp.dense_4h_to_h", MODEL, FF, 0, 0),
    {.name = NULL}};

static const struct sh_gguf_item items[] = {
    SH_GGUF_COUNT_ITEMS("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
                        "max_position_embeddings"),
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_epsilon", "layer_norm_eps"),
    {.name = "use_parallel_residual", .hub = "use_parallel_residual", .kind = SH_GGUF_FLAG},
    {.name = NULL}};

static const struct sh_gguf_form gguf = {.arch = "gptneox", .items = items, .share_key = "rotary_pct",
                                         .base_key = "rotary_emb_base", .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE};

const struct sh_family sh_family_gpt_neox = {
    .special = "parallel blocks, partial rotation",
    .name = "gpt_neox", .model_types = SH_WORDS("gpt_neox"),
    .architectures = SH_WORDS("GPTNeoXForCausalLM", "GPTNeoXModel"), .prefixes = SH_WORDS("gpt_neox.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 0.25f, .rope = {.base = 10000},
              .flags = SH_GPT_FLAGS | SH_PARALLEL},
    .keys = keys, .params = params, .gguf = &gguf, .finish = sh_config_classic_rope};

/* ---- GPT-NeoX Japanese ---- */

static const struct sh_key keys_japanese[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "rotary_pct"),
    SH_REAL_KEY(rope.base, 1e12, "rotary_emb_base"), {.json = {NULL}}};

static const struct sh_param params_japanese[] = {
    SH_MATRIX(TOK_EMBED, "embed_in.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "final_layer_norm", 0),
    SH_HEAD_PARAM("embed_out.weight"), SH_NORM_PAIR(ATTN_NORM, LAYER "input_layernorm", 0),
    SH_MATRIX(Q_W, LAYER "attention.query_key_value.weight", Q, MODEL, SH_INTERLEAVED),
    SH_MATRIX(K_W, LAYER "attention.query_key_value.weight", KV, MODEL, SH_INTERLEAVED),
    SH_MATRIX(V_W, LAYER "attention.query_key_value.weight", KV, MODEL, SH_INTERLEAVED),
    SH_MATRIX(O_W, LAYER "attention.dense.weight", MODEL, Q, 0),
    SH_VECTOR(O_B, LAYER "attention.dense_bias", MODEL, SH_HAS_OUT_BIAS, 0),
    SH_NORM_PAIR(MLP_NORM, LAYER "post_attention_layernorm", 0),
    SH_MATRIX(UP_W, LAYER "mlp.dense_h_to_4h.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, LAYER "mlp.dense_4h_to_h.weight", MODEL, FF, 0), {.name = NULL}};

static int shape_japanese(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int by = 4;
    if (sh_config_count(c, "intermediate_multiple_size", 10000, &by, e))
        return -1;
    if ((long long)a->d_model * by > 100000000)
        return sh_config_refuse(c, "intermediate_multiple_size", "at most 10^8 / hidden_size", e);
    a->d_ff = a->d_model * by;
    return 0;
}

/* Older files have one, newer ones the other; transformers takes nothing from the second if both are there. */
static int finish_japanese(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_filled(c, "rope_scaling") && sh_config_is_filled(c, "rope_parameters"))
        return sh_config_refuse(c, "rope_scaling", "null, because there are rope_parameters", e);
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_gpt_neox_japanese = {
    .special = "rotation of whole heads, a bias in the last layer alone",
    .name = "gpt_neox_japanese", .model_types = SH_WORDS("gpt_neox_japanese"),
    .architectures = SH_WORDS("GPTNeoXJapaneseForCausalLM", "GPTNeoXJapaneseModel"),
    .prefixes = SH_WORDS("gpt_neox_japanese.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000}, .last_out_bias = 1,
              .flags = SH_TIED_HEAD | SH_HAS_OUT_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM},
    .keys = keys_japanese, .params = params_japanese, .only = SH_WORDS("head_dim=null"),
    .unread = SH_WORDS("intermediate_size", "num_key_value_heads", "attention_bias", "mlp_bias"),
    .shape = shape_japanese, .finish = finish_japanese};
