/* SPDX-License-Identifier: Apache-2.0 */
/* MPT (MosaicML, 2023): ALiBi, layer norms without biases, GELU, and in some models clipped queries, keys and values.
 * Models with grouped queries or learned positions, which transformers does not support, do not run; only their memory
 * is computed. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define BLOCK "blocks.#."

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"), SH_REAL_KEY(clip, 1e6, "attn_config.clip_qkv"),
    SH_REAL_KEY(scale, 1e6, "attn_config.softmax_scale"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_NORM_WEIGHT(FINAL_NORM, "norm_f.weight", MODEL, 0),
    SH_HEAD_PARAM("lm_head.weight"), SH_NORM_WEIGHT(ATTN_NORM, BLOCK "norm_1.weight", MODEL, 0),
    SH_MATRIX(Q_W, BLOCK "attn.Wqkv.weight", Q, MODEL, 0), SH_MATRIX(K_W, BLOCK "attn.Wqkv.weight", KV, MODEL, 0),
    SH_MATRIX(V_W, BLOCK "attn.Wqkv.weight", KV, MODEL, 0), SH_MATRIX(O_W, BLOCK "attn.out_proj.weight", MODEL, Q, 0),
    SH_NORM_WEIGHT(MLP_NORM, BLOCK "norm_2.weight", MODEL, 0),
    SH_MATRIX(UP_W, BLOCK "ffn.up_proj.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, BLOCK "ffn.down_proj.weight", MODEL, FF, 0), {.name = NULL}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"multihead_attention", 0}, {"multiquery_attention", 1},
                                           {"grouped_query_attention", 2}, {NULL, 0}};
    int kind = 0, none = 1, alibi = 0;
    if (sh_config_choice(c, "attn_config.attn_type", kinds, &kind, e) || sh_config_flag(c, "no_bias", &none, e) ||
        sh_config_flag(c, "attn_config.alibi", &alibi, e))
        return -1;
    if (kind == 2 && !f->kv_heads)
        return sh_config_refuse(c, "attn_config.kv_n_heads", "a number of KV heads", e);
    f->kv_heads = kind == 1 ? 1 : f->kv_heads;
    f->norm = none ? SH_KEPT_SCALE : SH_KEPT_LAYER;
    f->qkv_bias = f->o_bias = f->mlp_bias = !none;
    f->positions = alibi ? 0 : f->max_pos;
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FACT(kv_heads, 1, "attn_config.kv_n_heads"), {.json = {NULL}}};

const struct sh_family sh_family_mpt = {
    .special = "ALiBi, clipped queries, keys and values",
    .name = "mpt", .model_types = SH_WORDS("mpt"), .architectures = SH_WORDS("MPTForCausalLM", "MptForCausalLM"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_ALIBI, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048,
              .flags = SH_TIED_HEAD | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_mpt,
    .only = SH_WORDS("attn_config.attn_type=\"multihead_attention\"", "attn_config.alibi=true",
                     "attn_config.qk_ln=false", "attn_config.prefix_lm=false", "attn_config.alibi_bias_max=8",
                     "no_bias=true", "logit_scale=null"),
    .facts = facts, .shape = sh_four_wide, .count = count};
