/* SPDX-License-Identifier: Apache-2.0 */
/* Solar Open (Upstage, 2025): LLaMA with experts in every layer, chosen by DeepSeek-V3's router, and a shared one. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_DEEPSEEK_MIXTURE, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_ROUTER("mlp.gate.weight"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_OUT_BIAS;     /* attention_bias is of q, k and v alone              */
    a->d_ff = a->d_ff ? a->d_ff : a->mix.width;
    return sh_mixture_shared(a, c, "n_shared_experts", 1, e);
}

const struct sh_family sh_family_solar_open = {
    .special = "experts by corrected sigmoids in every layer, a shared expert",
    .name = "solar_open", .model_types = SH_WORDS("solar_open"),
    .architectures = SH_WORDS("SolarOpenForCausalLM", "SolarOpenModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .d_head = 128, .rotary_share = 1, .rope = {.base = 1e6f},
              .mix = {.n = 128, .used = 8, .width = 1280, .groups = 1, .used_groups = 1, .scale = 1,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = keys, .params = params, .only = SH_WORDS("first_k_dense_replace=0"), .knows = " first_k_dense_replace ",
    .shape = shape, .finish = sh_config_classic_rope};
