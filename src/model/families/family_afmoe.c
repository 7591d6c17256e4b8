/* SPDX-License-Identifier: Apache-2.0 */
/* AFMoE (Arcee's Trinity, 2025): four norms a layer, windows that rotate and global layers that do not, attention's
 * output multiplied by a sigmoid, experts after the first layers. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_DEEPSEEK_MIXTURE, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_attention_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "pre_mlp_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_mlp_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_MATRIX(ATTN_GATE_W, SH_LAYER "self_attn.gate_proj.weight", Q, MODEL, 0), SH_LLAMA_FEED,
    SH_ROUTER("mlp.router.gate.weight"), SH_CHOICE("mlp.expert_bias"), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 4;
    if (sh_mixture_needs(c, a->mix.n, "num_experts", e) ||
        sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
        sh_mixture_shared(a, c, "num_shared_experts", 2, e) || sh_mixture_after(a, c, "num_dense_layers", 1, e) ||
        sh_config_count(c, "global_attn_every_n_layers", (int)1e8, &period, e) || sh_config_window(c, 1024, a, e) ||
        sh_config_windows(c, sh_but_each, period, a, e))
        return -1;
    sh_config_still_globals(a);
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int scales = 0;
    if (sh_config_flag(c, "mup_enabled", &scales, e))
        return -1;
    a->embed_scale = scales ? (float)sqrt((double)a->d_model) : 1;
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_afmoe = {
    .special = "windows with rotation, gated attention, experts by corrected sigmoids",
    .name = "afmoe", .model_types = SH_WORDS("afmoe"), .architectures = SH_WORDS("AfmoeForCausalLM", "AfmoeModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 16384, .d_head = 128, .rotary_share = 1,
              .rope = {.base = 10000},
              .mix = {.used = 8, .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_ATTENTION_GATE | SH_MIX_NORMED},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_afmoe, .only = SH_WORDS("score_func=\"sigmoid\"", "n_group=1", "route_norm=true"),
    .knows = " sliding_window layer_types ", .shape = shape, .finish = finish};
