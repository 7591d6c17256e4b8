/* SPDX-License-Identifier: Apache-2.0 */
/* Hunyuan dense (Tencent, 2025): LLaMA with norms on queries and keys after the rotation, whose base is stretched by
 * alpha^(d / (d - 2)). The text part of HunyuanOCR (2025) is the same: a token has several positions, which are equal
 * for text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(Q_NORM, SH_LAYER "self_attn.query_layernorm.weight", HEAD, 0),
    SH_NORM_WEIGHT(K_NORM, SH_LAYER "self_attn.key_layernorm.weight", HEAD, 0), SH_LLAMA_FEED, {.name = NULL}};

int sh_hunyuan_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float alpha = 0;
    const char *object = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    int old = !strcmp(object, "rope_scaling");
    if (sh_config_real(c, old ? "rope_scaling.alpha" : "rope_parameters.alpha", 1e9, &alpha, e) ||
        sh_config_real(c, "rope_parameters.rope_theta", 1e12, &a->rope.base, e))
        return -1;
    const char *type = NULL;
    if (sh_config_word(c, old ? "rope_scaling.rope_type" : "rope_parameters.rope_type", &type, e) ||
        (!type && sh_config_word(c, old ? "rope_scaling.type" : "rope_parameters.type", &type, e)))
        return -1;
    if (!(alpha > 0) || (type && strcmp(type, "dynamic") && strcmp(type, "xdrope")))
        return sh_config_whole_rope(a, c, e);
    if (sh_config_turns_whole(a, c, e))
        return -1;
    if (a->n_rot < 4)
        return sh_config_refuse(c, "head_dim", "at least 4", e);
    a->rope.base *= (float)pow((double)alpha, (double)a->n_rot / (a->n_rot - 2));
    a->rope.original = a->max_pos;
    return 0;
}

const struct sh_family sh_family_hunyuan_v1_dense = {
    .special = "a norm of each query and key after the rotation, alpha scaling",
    .name = "hunyuan_v1_dense", .model_types = SH_WORDS("hunyuan_v1_dense"),
    .architectures = SH_WORDS("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_LATE},
    .keys = sh_llama_keys, .params = params,
    .gguf = &sh_gguf_hunyuan_v1_dense, .only = SH_WORDS("use_qk_norm=true", "use_cla=false"),
    .finish = sh_hunyuan_finish};

/* ---- the text part of HunyuanOCR; published files have no text_config and call the scaling "xdrope" ---- */

static const struct sh_key keys_vl[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(d_head, 1e5, "head_dim", "attention_head_dim"),
    SH_COUNT_KEY(n_vocab, 1e8, "vocab_size", "org_vocab_size"), {.json = {NULL}}};

/* The older name of a count, which may stand next to the newer one: with the same value. */
static int check_same(const struct sh_config *c, const char *key, int count, struct sh_err *e)
{
    int older = count;
    if (sh_config_count(c, key, (int)1e8, &older, e))
        return -1;
    char expected[32];
    snprintf(expected, sizeof expected, "%d", count);
    return older == count ? 0 : sh_config_refuse(c, key, expected, e);
}

static int shape_vl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int outer = 1, text = 1;                    /* the head is the embedding if either says so        */
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* mlp_bias is not among its keys                       */
    if (sh_config_has(c, "attention_head_dim") && check_same(c, "attention_head_dim", a->d_head, e))
        return -1;
    if (sh_config_flag(c, "tie_word_embeddings", &text, e) || check_same(c, "org_vocab_size", a->n_vocab, e) ||
        sh_config_outer_flag(c, "tie_word_embeddings", &outer, e))
        return -1;
    if (!sh_config_has_text(c) && !text && !sh_config_is_gguf(c))
        return sh_config_refuse(c, "tie_word_embeddings", "true", e);
    a->flags |= outer || text ? SH_TIED_HEAD : 0u;
    return 0;
}

const struct sh_family sh_family_hunyuan_vl = {
    .special = "text of HunyuanOCR: Hunyuan dense",
    .name = "hunyuan_vl", .model_types = SH_WORDS("hunyuan_vl_text", "hunyuan_vl"),
    .architectures = SH_WORDS("HunYuanVLForConditionalGeneration", "HunYuanVLTextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_LATE | SH_TIED_HEAD},
    .keys = keys_vl, .params = params, .gguf = &sh_gguf_hunyuan_vl,
    .only = SH_WORDS("use_qk_norm=true", "use_cla=false"), .shape = shape_vl, .finish = sh_hunyuan_finish};
