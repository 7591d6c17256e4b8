/* SPDX-License-Identifier: Apache-2.0 */
/* BioGPT (Luo et al., 2022) and XGLM (Lin et al., 2021): OPT with scaled embeddings and GELU; XGLM's positions are
 * sines and cosines, which are not stored. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_COUNT_KEY(n_head, 1e5, "num_attention_heads", "attention_heads"),
    SH_ACT_KEY("hidden_act", "activation_function"), {.json = {NULL}}};     /* nothing reads layer_norm_eps */

#define COMMON(head) \
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "layer_norm", 0), \
    SH_HEAD_PARAM(head), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "self_attn_layer_norm", 0), \
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, 0, 0), \
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, 0, 0), \
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, 0, 0), \
    SH_LINEAR(O, SH_LAYER "self_attn.out_proj", MODEL, Q, 0, 0), \
    SH_NORM_PAIR(MLP_NORM, SH_LAYER "final_layer_norm", 0), SH_LINEAR(UP, SH_LAYER "fc1", FF, MODEL, 0, 0), \
    SH_LINEAR(DOWN, SH_LAYER "fc2", MODEL, FF, 0, 0)

static const struct sh_param params[] = {
    COMMON("output_projection.weight"), SH_MATRIX(POS_EMBED, "embed_positions.weight", POS, MODEL, 0), {.name = NULL}};
static const struct sh_param params_xglm[] = {COMMON("lm_head.weight"), {.name = NULL}};

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
