/* SPDX-License-Identifier: Apache-2.0 */
/* Arctic (Snowflake, 2024), whose code comes with its files: a plain block after attention, as wide as the model, and
 * experts parallel to both, which read the layer's input through a norm of their own. That code also supports layers
 * without experts, and experts after attention; these are refused here, because llama.cpp does not support them. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "residual_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(EXPERT_NORM, SH_LAYER "post_attention_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION,
    SH_MATRIX(GATE_W, SH_LAYER "residual_mlp.w1.weight", FF, MODEL, 0),
    SH_MATRIX(UP_W, SH_LAYER "residual_mlp.w3.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, SH_LAYER "residual_mlp.w2.weight", MODEL, FF, 0), SH_ROUTER("block_sparse_moe.gate.weight"),
    SH_MIXTRAL_EXPERTS, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int parallel = 0, every = 2;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_flag(c, "parallel_attn_mlp_res", &parallel, e) ||
        sh_config_count(c, "moe_layer_frequency", (int)1e8, &every, e) || sh_mixture_shape(a, c, e))
        return -1;
    if (!parallel)
        return sh_config_refuse(c, "parallel_attn_mlp_res", "true", e);
    if (every != 1)
        return sh_config_refuse(c, "moe_layer_frequency", "1: experts in every layer", e);
    a->d_ff = a->d_model;
    return 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    f->norms = 3;
    f->shared_ffn = f->hidden;              /* the plain block */
    return 0;
}

const struct sh_family sh_family_arctic = {
    .special = "experts that read what the layer reads, next to attention and a plain block",
    .name = "arctic", .model_types = SH_WORDS("arctic"), .architectures = SH_WORDS("ArcticForCausalLM", "ArcticModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 1e6f),
              .mix = {.n = 8, .used = 1, .route = SH_ROUTE_CHOSEN, .next_to = SH_NEXT_TO_ATTENTION},
              .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_arctic,
    .only = SH_WORDS("use_residual=true", "rope_scaling=null", "rope_parameters=null", "sliding_window=null",
                     "head_dim=null"), .shape = shape, .finish = sh_config_whole_rope, .count = count};
