/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): layer norm, both blocks read the layer's input, a
 * part of each head is rotated, q, k and v of a head are consecutive in one matrix. */
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
