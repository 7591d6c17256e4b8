/* SPDX-License-Identifier: Apache-2.0 */
/* Falcon (Almazrouei et al., 2023): layer norms, rotary positions or ALiBi. The new architecture (40B and later) has
 * grouped queries (num_kv_heads is the number of KV heads) and mostly a norm for each block; the old one has one KV
 * head with multi_query, and otherwise as many as query heads. Both blocks read the layer's input, or one norm of
 * it. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define H "h.#."
#define QKV H "self_attention.query_key_value"

static const struct sh_key keys[] = {
    SH_ACT_KEY("activation"), SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(d_ff, 1e8, "ffn_hidden_size"), SH_FLAG_KEY(SH_PARALLEL, "parallel_attn"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "bias"), {.json = {NULL}}};

/* Two norms read together are ln_attn and ln_mlp. */
#define TWO SH_HAS_TWO_NORMS
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "word_embeddings.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "ln_f", 0),
    SH_HEAD_PARAM("lm_head.weight"), SH_NORM_PAIR(ATTN_NORM, H "ln_attn", TWO), SH_NORM_PAIR(MLP_NORM, H "ln_mlp", TWO),
    SH_NORM_PAIR_UNLESS(ATTN_NORM, H "input_layernorm", TWO),
    SH_NORM_PAIR_UNLESS(MLP_NORM, H "post_attention_layernorm", TWO | SH_ONE_NORM),
    SH_LINEAR(Q, QKV, Q, MODEL, SH_HAS_BIAS, SH_INTERLEAVED), SH_LINEAR(K, QKV, KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(V, QKV, KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(O, H "self_attention.dense", MODEL, Q, SH_HAS_OUT_BIAS, 0),
    SH_LINEAR(UP, H "mlp.dense_h_to_4h", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(DOWN, H "mlp.dense_4h_to_h", MODEL, FF, SH_HAS_MLP_BIAS, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int newer = 0, multi = 1, kv = a->n_head, norms = 2;
    if (sh_config_flag(c, "new_decoder_architecture", &newer, e) || sh_config_flag(c, "multi_query", &multi, e) ||
        sh_config_count(c, sh_config_first(c, SH_WORDS("num_kv_heads", "n_head_kv"), 2), 100000, &kv, e) ||
        sh_config_count(c, "num_ln_in_parallel_attn", 2, &norms, e))
        return -1;
    a->n_kv_head = newer ? kv : multi ? 1 : a->n_head;
    if (newer && norms == 2)
        a->flags |= SH_PARALLEL | SH_HAS_TWO_NORMS;
    else if (a->flags & SH_PARALLEL)
        a->flags |= SH_ONE_NORM;
    return sh_four_wide(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int alibi = 0;
    if (sh_config_flag(c, "alibi", &alibi, e) || (!alibi && sh_config_classic_rope(a, c, e)))
        return -1;
    a->pos = alibi ? SH_POS_ALIBI : SH_POS_ROTARY;
    a->flags |= alibi ? SH_ROUNDS_SLOPES : 0;
    return 0;
}

const struct sh_family sh_family_falcon = {
    .special = "parallel blocks, one KV head or groups; or ALiBi",
    .name = "falcon", .model_types = SH_WORDS("falcon"), .architectures = SH_WORDS("FalconForCausalLM", "FalconModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_GELU, .max_pos = 2048, .rotary_share = 1,
              .flags = SH_TIED_HEAD | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_PARALLEL},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_falcon,
    .only = SH_WORDS("apply_residual_connection_post_layernorm=false"),
    .knows = " multi_query new_decoder_architecture num_ln_in_parallel_attn ", .shape = shape,
    .finish = finish};
