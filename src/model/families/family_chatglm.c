/* SPDX-License-Identifier: Apache-2.0 */
/* ChatGLM 2 and 3 and GLM-4-9b-chat as first published (Zhipu AI, 2023 and 2024), with their own code: the architecture
 * of GLM-4-9B (family_glm.c) under other names and keys. rope_ratio multiplies the base of the rotation, as in all
 * models except ChatGLM2-6b-32k, whose code divides positions by it although its config looks the same. GGUF files of
 * these models are of the family glm. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "layernorm_epsilon"), SH_COUNT_KEY(n_layer, 1e4, "num_layers"),
    SH_COUNT_KEY(n_vocab, 1e8, "padded_vocab_size"), SH_COUNT_KEY(d_ff, 1e8, "ffn_hidden_size"),
    SH_COUNT_KEY(max_pos, 1e8, "seq_length"), SH_COUNT_KEY(n_kv_head, 1e5, "multi_query_group_num"),
    SH_COUNT_KEY(d_head, 1e5, "kv_channels"), SH_FLAG_KEY(SH_HAS_FINAL_NORM, "post_layer_norm"), {.json = {NULL}}};

#define N "encoder.layers.#."
#define QKV N "self_attention.query_key_value"
#define GATE_UP N "mlp.dense_h_to_4h.weight"
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embedding.word_embeddings.weight", VOCAB, EMBED, 0),
    {.role = SH_HEAD, .name = "output_layer.weight", .rows = SH_DIM_VOCAB, .cols = SH_DIM_EMBED},
    SH_NORM_WEIGHT(FINAL_NORM, "encoder.final_layernorm.weight", MODEL, SH_HAS_FINAL_NORM),
    SH_NORM_WEIGHT(ATTN_NORM, N "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, N "post_attention_layernorm.weight", MODEL, 0),
    SH_LINEAR(Q, QKV, Q, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(K, QKV, KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, QKV, KV, MODEL, SH_HAS_BIAS, 0), SH_MATRIX(O_W, N "self_attention.dense.weight", MODEL, Q, 0),
    SH_MATRIX(GATE_W, GATE_UP, FF, MODEL, 0), SH_MATRIX(UP_W, GATE_UP, FF, MODEL, 0),
    SH_MATRIX(DOWN_W, N "mlp.dense_4h_to_h.weight", MODEL, FF, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int biased = 0, shares = 0;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_TIED_HEAD);
    if (sh_config_flag(c, "add_qkv_bias", &biased, e) || sh_config_flag(c, "multi_query_attention", &shares, e))
        return -1;
    if (!shares)                            /* then q, k and v lie head by head                       */
        return sh_config_refuse(c, "multi_query_attention", "true", e);
    a->flags |= biased ? SH_HAS_BIAS : 0;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float ratio = 1;
    if (sh_config_real(c, "rope_ratio", 1e8, &ratio, e))
        return -1;
    a->rope.base *= ratio;
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_chatglm = {
    .special = "partial rotation of neighbours, q, k and v in one tensor, gate and up in one",
    .name = "chatglm", .model_types = SH_WORDS("chatglm"),
    .architectures = SH_WORDS("ChatGLMModel", "ChatGLMForConditionalGeneration"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 0.5f, .rope = {.base = 10000}, .n_layer = 28,
              .d_model = 4096, .n_head = 32, .n_kv_head = 1, .d_head = 128, .d_ff = 13696, .n_vocab = 65024,
              .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS},
    .keys = keys, .params = params, .gguf = &sh_gguf_glm,
    .only = SH_WORDS("add_bias_linear=false", "apply_residual_connection_post_layernorm=false", "rmsnorm=true",
                     "original_rope=true", "pre_seq_len=null", "quantization_bit=0", "rope_scaling=null",
                     "rope_parameters=null", "partial_rotary_factor=null"),
    .shape = shape, .finish = finish};
