/* SPDX-License-Identifier: Apache-2.0 */
/* K-EXAONE (LG AI Research, 2026): EXAONE 4's attention after norms, DeepSeek-V3's experts after the first layers. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_DEEPSEEK_MIXTURE, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.e_score_correction_bias"), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_exaone4_shape(a, c, e) || sh_mixture_shared(a, c, "num_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

const struct sh_family sh_family_exaone_moe = {
    .special = "windows with rotation, other layers without positions, experts by corrected sigmoids",
    .name = "exaone_moe", .model_types = SH_WORDS("exaone_moe"),
    .architectures = SH_WORDS("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000},
              .mix = {.n = 64, .used = 8, .width = 1024, .groups = 1, .used_groups = 1, .scale = 2.5f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_exaone_moe,
    .knows = " sliding_window sliding_window_pattern layer_types mlp_layer_types first_k_dense_replace "
             "num_nextn_predict_layers ",
    .shape = shape, .finish = sh_config_whole_rope};
