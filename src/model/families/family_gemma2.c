/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 2 (Riviere et al., 2024): norms before and after both blocks, their weights stored less 1,
 * scaled embeddings, a window in every other layer from the first on, scores and logits capped. */
#include <math.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

const struct sh_param sh_gemma_params[] = {
    {SH_TOK_EMBED, "embed_tokens.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_FINAL_NORM_W, "norm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "input_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, LAYER "self_attn.q_proj.weight", SH_DIM_Q, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_B, LAYER "self_attn.q_proj.bias", SH_ONE, SH_DIM_Q, SH_HAS_BIAS, 0, 0},
    {SH_K_W, LAYER "self_attn.k_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_K_B, LAYER "self_attn.k_proj.bias", SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, 0},
    {SH_V_W, LAYER "self_attn.v_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_V_B, LAYER "self_attn.v_proj.bias", SH_ONE, SH_DIM_KV, SH_HAS_BIAS, 0, 0},
    {SH_Q_NORM_W, LAYER "self_attn.q_norm.weight", SH_ONE, SH_DIM_HEAD, SH_HAS_QK_NORM, 0, 0},
    {SH_K_NORM_W, LAYER "self_attn.k_norm.weight", SH_ONE, SH_DIM_HEAD, SH_HAS_QK_NORM, 0, 0},
    {SH_O_W, LAYER "self_attn.o_proj.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_O_B, LAYER "self_attn.o_proj.bias", SH_ONE, SH_DIM_MODEL, SH_HAS_OUT_BIAS, 0, 0},
    {SH_ATTN_POST_W, LAYER "post_attention_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_W, LAYER "pre_feedforward_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_GATE_W, LAYER "mlp.gate_proj.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_W, LAYER "mlp.up_proj.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_DOWN_W, LAYER "mlp.down_proj.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_MLP_POST_W, LAYER "post_feedforward_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

/* A cap that is null is none, one that is absent is the family's. */
static int read_cap(const struct sh_config *c, const char *key, float *cap, struct sh_err *e)
{
    if (sh_config_has(c, key))
        *cap = 0;
    return sh_config_real(c, key, 1e6, cap, e);
}

int sh_gemma_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float scalar = 256;
    int both_ways = 0;
    if (sh_config_real(c, "query_pre_attn_scalar", 1e6, &scalar, e) ||
        read_cap(c, "attn_logit_softcapping", &a->softcap, e) ||
        read_cap(c, "final_logit_softcapping", &a->head_softcap, e) ||
        sh_config_flag(c, "use_bidirectional_attention", &both_ways, e))
        return -1;
    if (!(scalar > 0))
        return sh_config_refuse(c, "query_pre_attn_scalar", "a number above 0", e);
    if (both_ways)
        return sh_config_refuse(c, "use_bidirectional_attention", "causal attention", e);
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
    return sh_gemma_finish(a, c, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_gemma2 = {
    .name = "gemma2",
    .model_types = SH_WORDS("gemma2"),
    .architectures = SH_WORDS("Gemma2ForCausalLM", "Gemma2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY,
              .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1,
              .rope = {.base = 10000}, .softcap = 50, .head_softcap = 30,
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD},
    .keys = keys,
    .params = sh_gemma_params,
    .knows = " sliding_window layer_types ",
    .shape = shape,
    .finish = finish,
};

/* The first Gemma, without windows (Mesnard et al., 2024), is counted. */
const struct sh_family sh_family_gemma = {
    .name = "gemma",
    .model_types = SH_WORDS("gemma"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
};
