/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 2 (Riviere et al., 2024): norms before and after both blocks, their weights stored less 1,
 * scaled embeddings, a window in every other layer from the first on, scores and logits capped. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0),
    SH_NORM_WEIGHT(FINAL_NORM, "norm.weight", MODEL, 0),
    SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(ATTN_NORM, LAYER "input_layernorm.weight", MODEL, 0),
    SH_LINEAR(Q, LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, LAYER "self_attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, LAYER "self_attn.v_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_NORM_WEIGHT(Q_NORM, LAYER "self_attn.q_norm.weight", HEAD, SH_HAS_QK_NORM),
    SH_NORM_WEIGHT(K_NORM, LAYER "self_attn.k_norm.weight", HEAD, SH_HAS_QK_NORM),
    SH_LINEAR(O, LAYER "self_attn.o_proj", MODEL, Q, SH_HAS_OUT_BIAS, 0),
    SH_NORM_WEIGHT(ATTN_POST, LAYER "post_attention_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, LAYER "pre_feedforward_layernorm.weight", MODEL, 0),
    SH_MATRIX(GATE_W, LAYER "mlp.gate_proj.weight", FF, MODEL, 0),
    SH_MATRIX(UP_W, LAYER "mlp.up_proj.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, LAYER "mlp.down_proj.weight", MODEL, FF, 0),
    SH_NORM_WEIGHT(MLP_POST, LAYER "post_feedforward_layernorm.weight", MODEL, 0),
    {.name = NULL}};

int sh_gemma_cap(const struct sh_config *c, const char *key, float *cap, struct sh_err *e)
{
    if (sh_config_has(c, key))
        *cap = 0;
    return sh_config_real(c, key, 1e6, cap, e);
}

static int gemma_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float scalar = 256;
    int both_ways = 0;
    if (sh_config_real(c, "query_pre_attn_scalar", 1e6, &scalar, e) ||
        sh_gemma_cap(c, "attn_logit_softcapping", &a->softcap, e) ||
        sh_gemma_cap(c, "final_logit_softcapping", &a->head_softcap, e) ||
        sh_config_flag(c, "use_bidirectional_attention", &both_ways, e))
        return -1;
    if (!(scalar > 0))
        return sh_config_refuse(c, "query_pre_attn_scalar", "a number greater than 0", e);
    if (both_ways)
        return sh_config_refuse(c, "use_bidirectional_attention", "false: attention must be causal", e);
    a->scale = (float)(1 / sqrt((double)scalar));
    a->embed_scale = (float)sqrt((double)a->d_model);
    return 0;
}

static int every_other(int layer, int period)
{
    return layer % period == 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 4096, a, e) || sh_config_windows(c, every_other, 2, a, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    for (const char *const *key = SH_WORDS("num_key_value_heads", "head_dim"); *key; key++)
        if (!sh_config_is_set(c, *key))
            return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), *key);
    return gemma_finish(a, c, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

static const struct sh_gguf_form gguf = {
    .arch = "gemma2", .items = sh_llama_items, .base_key = "rope_theta", .period = 2, .large = 46, .window = 4096,
    .cap = 50, .head_cap = 30, .traits = SH_GGUF_ROTARY | SH_GGUF_HEAD | SH_GGUF_CAPS};

const struct sh_family sh_family_gemma2 = {
    .special = "norms around blocks, capped scores and logits, a window in every other layer",
    .name = "gemma2", .model_types = SH_WORDS("gemma2"), .architectures = SH_WORDS("Gemma2ForCausalLM", "Gemma2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY,
              .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1,
              .rope = {.base = 10000}, .softcap = 50, .head_softcap = 30,
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD},
    .keys = keys, .params = params, .gguf = &gguf, .knows = " sliding_window layer_types ", .shape = shape,
    .finish = finish};

/* The first Gemma (Mesnard et al., 2024): no windows, no caps, and LLaMA's two norms. Its first files say gelu and mean
 * the tanh form; nothing reads hidden_activation. */
static const struct sh_key keys_1[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

static int finish_1(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->act = a->act == SH_ACT_GELU ? SH_ACT_GELU_TANH : a->act;
    a->embed_scale = (float)sqrt((double)a->d_model);
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_gemma = {
    .special = "scaled embedding, norms with 1 + w",
    .name = "gemma", .model_types = SH_WORDS("gemma"), .architectures = SH_WORDS("GemmaForCausalLM", "GemmaModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 10000}, .max_pos = 8192, .d_head = 256,
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD},
    .keys = keys_1, .params = sh_llama_params,
    .gguf = &sh_gguf_gemma, .only = SH_WORDS("use_bidirectional_attention=false"), .finish = finish_1};

/* VaultGemma (2025): Gemma 2 without norms on what the blocks give. */
static const struct sh_param params_vault[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, LAYER "input_layernorm.weight", MODEL, 0),
    SH_LLAMA_ATTENTION, SH_NORM_WEIGHT(MLP_NORM, LAYER "pre_feedforward_layernorm.weight", MODEL, 0), SH_LLAMA_FEED,
    {.name = NULL}};

const struct sh_family sh_family_vaultgemma = {
    .special = "Gemma 2 without norms on outputs",
    .name = "vaultgemma", .model_types = SH_WORDS("vaultgemma"),
    .architectures = SH_WORDS("VaultGemmaForCausalLM", "VaultGemmaModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 10000}, .max_pos = 8192, .softcap = 50,
              .head_softcap = 30,
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD},
    .keys = keys, .params = params_vault, .knows = " sliding_window layer_types ", .shape = shape, .finish = finish};

/* Gemma 3 (Kamath et al., 2025): Gemma 2 with norms on queries and keys in place of the caps, and five windowed layers,
 * with faster rotation, to one that sees all tokens. In models with vision, the config of the text is one part of the
 * file and gives only what differs from these defaults. */
static const struct sh_key keys_3[] = {
    SH_ACT_KEY("hidden_activation"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_parameters.full_attention.rope_theta", "rope_theta"),
    SH_REAL_KEY(local_rope.base, 1e12, "rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq"),
    {.json = {NULL}}};

static int shape_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 6;
    return sh_config_window(c, 4096, a, e) || sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
           sh_config_windows(c, sh_but_each, period, a, e) ? -1 : 0;
}

static int finish_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_scaling", "rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    if (gemma_finish(a, c, e))
        return -1;
    a->softcap = 0;                     /* of scores; the key is there, and nothing reads it */
    if (sh_config_rope(c, whole, a, &a->rope, e) || sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    return 0;
}

static const struct sh_gguf_form gguf_3 = {
    .arch = "gemma3", .items = sh_llama_items, .base_key = "rope_theta", .period = 6, .large = 62,
    .traits = SH_GGUF_ROTARY | SH_GGUF_HEAD | SH_GGUF_CAPS | SH_GGUF_LOCAL_BASE};

const struct sh_family sh_family_gemma3 = {
    .special = "windows with rotation of their own, a norm of each query and key",
    .name = "gemma3", .model_types = SH_WORDS("gemma3_text"), .counted_types = SH_WORDS("gemma3"),
    .architectures = SH_WORDS("Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {.n_head = 8, .n_kv_head = 4, .d_head = 256, .n_vocab = 262208, .max_pos = 131072, .norm = SH_NORM_RMS,
              .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-6f, .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 1e6f},
              .local_rope = {.base = 1e4f},
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD | SH_HAS_QK_NORM},
    .keys = keys_3, .params = params, .gguf = &gguf_3,
    .knows = " sliding_window layer_types sliding_window_pattern ", .shape = shape_3, .finish = finish_3};
