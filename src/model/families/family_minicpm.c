/* SPDX-License-Identifier: Apache-2.0 */
/* MiniCPM 1, 2 and 4 (OpenBMB, 2024 and 2025), whose code comes with their files: LLaMA with factors of embeddings and
 * of the blocks' outputs, and a divisor of logits; some have experts. If the config extends the original number of
 * positions, that code always uses the rotary factors for long texts, and so are hub folders run here; llama.cpp uses
 * these factors for long texts only, and so are GGUF files run here. Old GGUF files have no keys for the other factors;
 * llama.cpp multiplies their logits by the divisor, whereas here they are divided by it. Attention to chosen blocks
 * (InfLLM v2) begins at `dense_len` tokens: only shorter texts are read. */
#include <math.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_EXPERTS("mlp.experts", "w1", "w3", "w2"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float depth = 1, base = 1, divisor;
    a->embed_scale = 1;
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* the family has no mlp_bias */
    if (sh_config_real(c, "scale_emb", 1e6, &a->embed_scale, e) ||
        sh_config_real(c, "scale_depth", 1e6, &depth, e) || sh_config_real(c, "dim_model_base", 1e8, &base, e))
        return -1;
    if (!(a->embed_scale > 0))
        return sh_config_refuse(c, "scale_emb", "a number above 0", e);
    if (!(depth > 0))
        return sh_config_refuse(c, "scale_depth", "a number above 0", e);
    if (!(base > 0))
        return sh_config_refuse(c, "dim_model_base", "a number above 0", e);
    a->residual_scale = depth / sqrtf((float)a->n_layer);
    divisor = (float)a->d_model / base;
    if (sh_config_real(c, "gguf.residual_scale", 1e6, &a->residual_scale, e) ||
        sh_config_real(c, "gguf.logit_scale", 1e8, &divisor, e) ||
        sh_config_at_least(c, "num_experts", 0, 100000, &a->mix.n, e))
        return -1;
    if (!(divisor > 0))
        return sh_config_refuse(c, "gguf.logit_scale", "a number above 0", e);
    a->logit_scale = 1 / divisor;
    if (!a->mix.n)
        a->mix.used = 0;
    return a->mix.n ? sh_mixture_shape(a, c, e) : 0;
}

/* Limits texts to lengths at which every token sees all tokens before it. */
static int see_all(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int dense = 8192;
    if (!sh_config_is_filled(c, "sparse_config"))
        return 0;
    if (sh_config_count(c, "sparse_config.dense_len", (int)1e8, &dense, e))
        return -1;
    if (dense < 3)
        return sh_config_refuse(c, "sparse_config.dense_len", "at least 3 tokens: longer texts are not read", e);
    a->max_pos = dense - 1 < a->max_pos ? dense - 1 : a->max_pos;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const scaling = "rope_scaling";
    if (a->d_head * a->n_head != a->d_model)
        return sh_config_refuse(c, "head_dim", "hidden_size / num_attention_heads", e);
    if (sh_config_classic_rope(a, c, e))
        return -1;
    struct sh_rope *r = &a->rope;
    if (r->kind != SH_ROPE_PLAIN && r->kind != SH_ROPE_LINEAR && r->kind != SH_ROPE_DYNAMIC && r->kind != SH_ROPE_LONG)
        return sh_config_refuse(c, scaling, "linear, dynamic or longrope", e);
    if (r->kind == SH_ROPE_LONG && !sh_config_is_gguf(c)) {
        if (!sh_config_is(c, "rope_scaling.attention_factor", "null"))
            return sh_config_refuse(c, "rope_scaling.attention_factor", "none", e);
        if (r->original > a->max_pos)
            return sh_config_refuse(c, "rope_scaling.original_max_position_embeddings",
                                    "at most max_position_embeddings", e);
        r->attention = (float)sh_rope_long_attention((double)a->max_pos / r->original, r->original);
        if (a->max_pos > r->original)
            memcpy(r->stretch[0], r->stretch[1], sizeof r->stretch[0]);
    }
    return see_all(a, c, e);
}

const struct sh_family sh_family_minicpm = {
    .special = "multipliers of embedding, residuals and logits; longrope; experts in some",
    .name = "minicpm", .model_types = SH_WORDS("minicpm"),
    .architectures = SH_WORDS("MiniCPMForCausalLM", "MiniCPMModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .mix = {.used = 2}, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_minicpm,
    .only = SH_WORDS("rope_scaling.short_mscale=null", "rope_scaling.long_mscale=null",
                     "rope_parameters=null", "partial_rotary_factor=null"),
    .knows = " num_experts ", .shape = shape, .finish = finish};
