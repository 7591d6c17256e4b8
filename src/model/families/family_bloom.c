/* SPDX-License-Identifier: Apache-2.0 */
/* BLOOM (Le Scao et al., 2022): layer norm, one more after the embedding, ALiBi in place of positions, q, k and v of a
 * head one after another in one matrix, tanh GELU. Nothing limits the length of texts; max_pos is the length of
 * training. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."

static const struct sh_key keys[] = {
    SH_COUNT_KEY(max_pos, 1e8, "seq_length"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "word_embeddings.weight", VOCAB, EMBED, 0),
    SH_NORM_PAIR(EMBED_NORM, "word_embeddings_layernorm", 0),
    SH_NORM_PAIR(FINAL_NORM, "ln_f", 0),
    SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_PAIR(ATTN_NORM, LAYER "input_layernorm", 0),
    SH_LINEAR(Q, LAYER "self_attention.query_key_value", Q, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(K, LAYER "self_attention.query_key_value", KV, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(V, LAYER "self_attention.query_key_value", KV, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(O, LAYER "self_attention.dense", MODEL, Q, 0, 0),
    SH_NORM_PAIR(MLP_NORM, LAYER "post_attention_layernorm", 0),
    SH_LINEAR(UP, LAYER "mlp.dense_h_to_4h", FF, MODEL, 0, 0),
    SH_LINEAR(DOWN, LAYER "mlp.dense_4h_to_h", MODEL, FF, 0, 0),
    {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int normed_residual = 0;
    (void)a;
    if (sh_config_flag(c, "apply_residual_connection_post_layernorm", &normed_residual, e))
        return -1;
    if (normed_residual)
        return sh_config_refuse(c, "apply_residual_connection_post_layernorm",
                                "false: residuals must be taken before the norms", e);
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(embed_norm, 1), {.json = {NULL}}};

static const struct sh_gguf_item items[] = {
    SH_GGUF_COUNT_ITEM("block_count", "n_layer"),
    SH_GGUF_COUNT_ITEM("embedding_length", "hidden_size"),
    SH_GGUF_COUNT_ITEM("attention.head_count", "n_head"),
    SH_GGUF_COUNT_ITEM("context_length", "seq_length"),
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    {.name = NULL}};

static const struct sh_gguf_form gguf = {.arch = "bloom", .items = items, .traits = SH_GGUF_ALIBI};

const struct sh_family sh_family_bloom = {
    .special = "ALiBi, a norm on the embedding, residuals after norms",
    .name = "bloom", .model_types = SH_WORDS("bloom"), .architectures = SH_WORDS("BloomForCausalLM", "BloomModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ALIBI, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .flags = SH_TIED_HEAD | SH_GPT_FLAGS},
    .keys = keys, .params = params, .gguf = &gguf, .shape = sh_four_wide, .finish = finish, .facts = facts};
