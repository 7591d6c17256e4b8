/* SPDX-License-Identifier: Apache-2.0 */
/* The text part of Molmo 2 (Clark et al., 2026): Qwen 3's layers or, in the models named O, those of OLMo 2, in which
 * only the layers of a list scale their rotation. The embedding has more rows than the head, for tokens of pictures,
 * in a tensor of their own. A text without pictures is read causally. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps", "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"), SH_FLAG_KEY(SH_HAS_BIAS, "qkv_bias", "attention_bias"),
    {.json = {NULL}}};

/* Names as published, then as transformers has them in memory. */
#define BLOCK "transformer.blocks.#."
#define ATTENTION BLOCK "self_attn."
#define NORM(part, published, name) \
    SH_NORM_WEIGHT(part, BLOCK published ".weight", MODEL, 0), SH_NORM_WEIGHT(part, SH_LAYER name ".weight", MODEL, 0)
#define QKV(part, out) SH_LINEAR(part, ATTENTION "att_proj", out, MODEL, SH_HAS_BIAS, 0)
#define HEAD_NORM(part, stem, wide) \
    {.role = SH_##part##_W, .name = ATTENTION stem, .cols = SH_DIM_HEAD, .unless = SH_QK_NORM_WIDE}, \
    {.role = SH_##part##_W, .name = ATTENTION stem, .cols = SH_DIM_##wide, .needs = SH_QK_NORM_WIDE}
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "transformer.wte.embedding", OUT, EMBED, SH_CUT_ANYWHERE),
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0),
    SH_MATRIX(MORE_EMBED, "transformer.wte.new_embedding", MORE, EMBED, SH_CUT_ANYWHERE | SH_OPTIONAL),
    {.role = SH_HEAD, .name = "lm_head.weight", .rows = SH_DIM_OUT, .cols = SH_DIM_EMBED, .form = SH_WHOLE_NAME},
    SH_NORM_WEIGHT(FINAL_NORM, "transformer.ln_f.weight", MODEL, 0), SH_LLAMA_FINAL_NORM,
    NORM(ATTN_NORM, "attn_norm", "input_layernorm"), NORM(MLP_NORM, "ff_norm", "post_attention_layernorm"),
    NORM(ATTN_POST, "attn_norm", "input_layernorm"), NORM(MLP_POST, "ff_norm", "post_attention_layernorm"),
    QKV(Q, Q), QKV(K, KV), QKV(V, KV), SH_MATRIX(O_W, ATTENTION "attn_out.weight", MODEL, Q, 0), SH_LLAMA_ATTENTION,
    HEAD_NORM(Q_NORM, "q_norm.weight", Q), HEAD_NORM(K_NORM, "k_norm.weight", KV), SH_LLAMA_QK_NORMS,
    SH_MATRIX(UP_W, BLOCK "mlp.ff_proj.weight", FF, MODEL, 0),
    SH_MATRIX(GATE_W, BLOCK "mlp.ff_proj.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, BLOCK "mlp.ff_out.weight", MODEL, FF, 0), SH_LLAMA_FEED, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word norms[] = {{"qwen3", 0}, {"olmo", 1}, {NULL, 0}};
    int more = 128, wide = 0, after = 0;
    a->flags &= ~(unsigned)(SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_count(c, "additional_vocab_size", (int)1e8, &more, e) ||
        sh_config_choice(c, "qk_norm_type", norms, &wide, e) || sh_config_flag(c, "norm_after", &after, e))
        return -1;
    if (a->flags & SH_TIED_HEAD)
        return sh_config_refuse(c, "tie_word_embeddings", "false: the embedding has more rows than the head", e);
    a->n_out = a->n_vocab;
    a->n_vocab += more;
    a->flags |= wide ? SH_QK_NORM_WIDE : 0;
    a->norm_place = after ? SH_NORM_OUT : SH_NORM_PRE;
    return 0;
}

/* The layers that are not in the list do not scale their rotation. */
static int turn_apart(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "rope_scaling_layers";
    int n = sh_config_length(c, list);
    unsigned char scales[SH_MOST_LAYERS] = {0};
    if (!sh_config_has(c, list) || sh_config_is_null(c, list))
        return 0;
    for (int i = 0; i < n && i < SH_MOST_LAYERS; i++) {
        char key[48];
        int layer = -1;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_at_least(c, key, 0, (int)1e8, &layer, e))
            return -1;
        if (layer < 0)
            return sh_config_refuse(c, key, "the number of a layer", e);
        if (layer < a->n_layer)
            scales[layer] = 1;
    }
    if (n < 0 || n > SH_MOST_LAYERS)
        return sh_config_refuse(c, list, "a list of layers", e);
    a->local_rope.base = a->rope.base;
    for (int i = 0; i < a->n_layer; i++)
        if (!scales[i])
            sh_arch_turn_apart(a, i);
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_whole_rope(a, c, e))
        return -1;
    return a->rope.kind == SH_ROPE_PLAIN ? 0 : turn_apart(a, c, e);
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int more = 128;
    if (sh_facts_count(c, "additional_vocab_size", 1, &more, e))
        return -1;
    f->head_rows = f->vocab - more;
    return 0;
}

const struct sh_family sh_family_molmo2 = {
    .special = "text of Molmo 2: Qwen 3 or OLMo 2, a rotation that some layers scale",
    .name = "molmo2", .model_types = SH_WORDS("molmo2_text"),
    .architectures = SH_WORDS("Molmo2ForConditionalGeneration"), .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 36864, .rotary_share = 1, .rope = {.base = 10000}, .n_kv_head = 8,
              .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = keys, .params = params, .unread = SH_WORDS("mlp_bias", "attention_bias"), .shape = shape, .finish = finish,
    .count = count};
