/* SPDX-License-Identifier: Apache-2.0 */
/* BioGPT (Luo et al., 2022) and XGLM (Lin et al., 2021): OPT with scaled embeddings and GELU; XGLM's positions are
 * sines and cosines, which are not stored. The text part of Kosmos-2 (Peng et al., 2023): XGLM with a norm before the
 * last product of each block. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_COUNT_KEY(n_head, 1e5, "num_attention_heads", "attention_heads"),
    SH_ACT_KEY("hidden_act", "activation_function"), {.json = {NULL}}};     /* nothing reads layer_norm_eps */

#define COMMON(head, feed) \
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "layer_norm", 0), \
    SH_HEAD_PARAM(head), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "self_attn_layer_norm", 0), \
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, 0, 0), \
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, 0, 0), \
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, 0, 0), \
    SH_LINEAR(O, SH_LAYER "self_attn.out_proj", MODEL, Q, 0, 0), \
    SH_NORM_PAIR(MLP_NORM, SH_LAYER "final_layer_norm", 0), SH_LINEAR(UP, SH_LAYER feed "fc1", FF, MODEL, 0, 0), \
    SH_LINEAR(DOWN, SH_LAYER feed "fc2", MODEL, FF, 0, 0)

static const struct sh_param params[] = {
    COMMON("output_projection.weight", ""), SH_MATRIX(POS_EMBED, "embed_positions.weight", POS, MODEL, 0),
    {.name = NULL}};
static const struct sh_param params_xglm[] = {COMMON("lm_head.weight", ""), {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int scales = 1;
    if (sh_config_flag(c, "scale_embedding", &scales, e))
        return -1;
    a->embed_scale = scales ? (float)sqrt((double)a->d_model) : 1;
    if (a->pos == SH_POS_WAVES && (a->d_model < 4 || a->d_model % 2))
        return sh_config_refuse(c, "d_model", "an even number from 4 on", e);
    if (a->pos == SH_POS_WAVES && (long long)a->d_model * a->max_pos > 1000000000)
        return sh_config_refuse(c, "max_position_embeddings", "at most 10^9 / d_model", e);
    return 0;
}

const struct sh_family sh_family_biogpt = {
    .special = "learned positions with an offset of 2, scaled embedding",
    .name = "biogpt", .model_types = SH_WORDS("biogpt"), .architectures = SH_WORDS("BioGptForCausalLM", "BioGptModel"),
    .prefixes = SH_WORDS("biogpt.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_LEARNED, .pos_offset = 2, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .flags = SH_TIED_HEAD | SH_GPT_FLAGS},
    .keys = keys, .params = params, .finish = finish};

const struct sh_family sh_family_xglm = {
    .special = "sines as positions, scaled embedding",
    .name = "xglm", .model_types = SH_WORDS("xglm"), .architectures = SH_WORDS("XGLMForCausalLM", "XGLMModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_WAVES, .pos_offset = 2, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 2048, .flags = SH_TIED_HEAD | SH_GPT_FLAGS},
    .keys = keys, .params = params_xglm, .only = SH_WORDS("add_cross_attention=false"), .finish = finish};

/* ---- Kosmos-2: positions begin after the number of the token for padding ---- */

#define SUB_NORM(part, stem, width) \
    SH_VECTOR(part##_W, SH_LAYER stem ".weight", width, 0, 0), SH_VECTOR(part##_B, SH_LAYER stem ".bias", width, 0, 0)

static const struct sh_key keys_kosmos[] = {
    SH_COUNT_KEY(n_layer, 1e4, "num_hidden_layers", "layers"), SH_COUNT_KEY(d_model, 1e7, "hidden_size", "embed_dim"),
    SH_COUNT_KEY(n_head, 1e5, "num_attention_heads", "attention_heads"), SH_ACT_KEY("activation_function"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), {.json = {NULL}}};

static const struct sh_param params_kosmos[] = {
    COMMON("lm_head.weight", "ffn."), SUB_NORM(O_NORM, "self_attn.inner_attn_ln", MODEL),
    SUB_NORM(DOWN_NORM, "ffn.ffn_layernorm", FF), {.name = NULL}};

static int finish_kosmos(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int pad = 1;
    if (sh_config_at_least(c, "pad_token_id", 0, 1000, &pad, e))
        return -1;
    a->pos_offset = pad + 1;
    return finish(a, c, e);
}

const struct sh_family sh_family_kosmos2 = {
    .special = "text of Kosmos-2: sines as positions, norms before the last product of each block",
    .name = "kosmos2", .model_types = SH_WORDS("kosmos_2_text_model"),
    .architectures = SH_WORDS("Kosmos2TextForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .pos = SH_POS_WAVES, .pos_offset = 2, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 2048,
              .flags = SH_TIED_HEAD | SH_GPT_FLAGS | SH_HAS_SUB_NORM},
    .keys = keys_kosmos, .params = params_kosmos, .only = SH_WORDS("add_cross_attention=false"),
    .unread = SH_WORDS("num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"), .finish = finish_kosmos};
