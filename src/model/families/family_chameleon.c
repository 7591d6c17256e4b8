/* SPDX-License-Identifier: Apache-2.0 */
/* Chameleon (Meta, 2024), for text: LLaMA whose queries and keys have layer norms, each head with weights of its own.
 * In the 30B, norms are on the outputs of the blocks. Pictures are tokens, which the head never predicts. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define EACH_HEAD(part, stem, many) \
    SH_VECTORS(part##_W, SH_LAYER stem ".weight", HEAD, many, SH_HAS_QK_NORM), \
    SH_VECTORS(part##_B, SH_LAYER stem ".bias", HEAD, many, SH_HAS_QK_NORM)

/* The norms have the same names wherever they are. */
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS,
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_attention_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION,
    EACH_HEAD(Q_NORM, "self_attn.q_norm", HEADS), EACH_HEAD(K_NORM, "self_attn.k_norm", KV_HEADS), SH_LLAMA_FEED,
    {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int after = 0;
    if (sh_config_flag(c, "swin_norm", &after, e))
        return -1;
    a->norm_place = after ? SH_NORM_OUT : SH_NORM_PRE;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char tokens[] = "vocabulary_map";
    if (!sh_config_has(c, tokens) || sh_config_is_null(c, tokens))
        return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), tokens);
    return sh_config_run(c, tokens, "IMGIMG", a->n_vocab, &a->mute, &a->n_mute, e) || sh_config_whole_rope(a, c, e)
               ? -1 : 0;
}

const struct sh_family sh_family_chameleon = {
    .special = "layer norms of queries and keys, each head with its own; no logits of picture tokens",
    .name = "chameleon", .model_types = SH_WORDS("chameleon"),
    .architectures = SH_WORDS("ChameleonForConditionalGeneration"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .n_kv_head = 32, .qk_layer_eps = 1e-5f,
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_EACH},
    .keys = sh_llama_keys, .params = params, .only = SH_WORDS("head_dim=null"), .shape = shape, .finish = finish};
