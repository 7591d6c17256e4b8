/* SPDX-License-Identifier: Apache-2.0 */
/* ModernBERT's decoder (Weller et al., 2025: Ettin): layer norms, one of them on the embedding, but none before the
 * first layer's attention; windows with a rotation of their own in two of three layers; a dense layer and a norm before
 * the output product. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "norm_eps"),
    {.json = {"classifier_activation"}, .kind = SH_KEY_ACT, .field = offsetof(struct sh_arch, dense_act)},
    SH_FLAG_KEY(SH_HAS_NORM_AFFINE, "norm_bias"), SH_FLAG_KEY(SH_HAS_HEAD_BIAS, "decoder_bias"),
    SH_REAL_KEY(rope.base, 1e12, "global_rope_theta"), SH_REAL_KEY(local_rope.base, 1e12, "local_rope_theta"),
    {.json = {NULL}}};

#define NORM(part, stem, how) \
    SH_VECTOR(part##_W, stem ".weight", MODEL, 0, how), \
    SH_VECTOR(part##_B, stem ".bias", MODEL, SH_HAS_NORM_AFFINE, how)
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embeddings.tok_embeddings.weight", VOCAB, EMBED, 0), NORM(EMBED_NORM, "embeddings.norm", 0),
    NORM(FINAL_NORM, "final_norm", 0), SH_MATRIX(HEAD_DENSE_W, "lm_head.dense.weight", MODEL, MODEL, SH_WHOLE_NAME),
    SH_VECTOR(HEAD_DENSE_B, "lm_head.dense.bias", MODEL, 0, SH_WHOLE_NAME),
    NORM(HEAD_NORM, "lm_head.norm", SH_WHOLE_NAME), SH_HEAD_PARAM("decoder.weight"),
    SH_VECTOR(HEAD_B, "decoder.bias", VOCAB, SH_HAS_HEAD_BIAS, SH_WHOLE_NAME),
    NORM(ATTN_NORM, SH_LAYER "attn_norm", 0), NORM(MLP_NORM, SH_LAYER "mlp_norm", 0),
    SH_LINEAR(Q, SH_LAYER "attn.q_proj", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, SH_LAYER "attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, SH_LAYER "attn.v_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(O, SH_LAYER "attn.Wo", MODEL, Q, SH_HAS_OUT_BIAS, 0),
    SH_LINEAR(GATE, SH_LAYER "mlp.Wi", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(UP, SH_LAYER "mlp.Wi", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(DOWN, SH_LAYER "mlp.Wo", MODEL, FF, SH_HAS_MLP_BIAS, 0), {.name = NULL}};

static int but_first_of(int layer, int period)
{
    return layer % period != 0;
}

/* A query sees half of local_attention keys, unless sliding_window says how many. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 3, both_sides = 128, is_said = sh_config_has(c, "sliding_window");
    const char *key = is_said ? "sliding_window" : "local_attention";
    if (sh_config_is_null(c, key))
        return sh_config_refuse(c, key, "a whole number", e);
    if (sh_config_flag(c, "classifier_bias", &a->dense_bias, e) ||
        sh_config_count(c, "global_attn_every_n_layers", (int)1e8, &period, e) ||
        (!is_said && sh_config_at_least(c, key, 2, (int)1e8, &both_sides, e)) ||
        sh_config_window(c, both_sides / 2, a, e))
        return -1;
    return sh_config_windows(c, but_first_of, period, a, e);
}

const struct sh_family sh_family_modernbert_decoder = {
    .special = "a norm on the embedding, windows with a base of their own, a dense layer before the output",
    .name = "modernbert_decoder", .model_types = SH_WORDS("modernbert-decoder"),
    .architectures = SH_WORDS("ModernBertDecoderForCausalLM", "ModernBertDecoderModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU, .dense_act = SH_ACT_GELU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1, .rope = {.base = 160000},
              .local_rope = {.base = 10000}, .first_bare = 1,
              .flags = SH_HAS_FINAL_NORM | SH_GATED | SH_HAS_EMBED_NORM | SH_HAS_HEAD_BIAS | SH_TIED_HEAD},
    .keys = keys, .params = params,
    .knows = " local_attention sliding_window layer_types global_attn_every_n_layers classifier_bias ",
    .shape = shape, .finish = sh_config_whole_ropes_by_kind};
