/* SPDX-License-Identifier: Apache-2.0 */
/* GLM-4.5 to 4.7 (Zhipu AI, 2025) and dots.llm1 (rednote, 2025): LLaMA whose later layers have experts with
 * DeepSeek-V3's router; GLM rotates a part of each head, and has biases on q, k and v. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define KEYS \
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    SH_DEEPSEEK_MIXTURE

#define SHARE SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor")
static const struct sh_key keys[] = {KEYS, SHARE, SH_FLAG_KEY(SH_HAS_QK_NORM, "use_qk_norm"), {.json = {NULL}}};
static const struct sh_key keys_4v[] = {KEYS, SHARE, {.json = {NULL}}};
static const struct sh_key keys_dots[] = {KEYS, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

/* shared, dense: the usual numbers of shared experts, and of first layers without experts */
static int mixture_shape(struct sh_arch *a, const struct sh_config *c, int shared, int dense, struct sh_err *e)
{
    return sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
           sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
           sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
           sh_mixture_shared(a, c, "n_shared_experts", shared, e) ||
           sh_mixture_after(a, c, "first_k_dense_replace", dense, e) ? -1 : 0;
}

static int shape_dots(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int first = 62;
    return mixture_shape(a, c, 0, 0, e) || sh_config_window(c, sh_config_is_gguf(c) ? 0 : 4096, a, e) ||
           sh_config_at_least(c, "max_window_layers", 0, (int)1e8, &first, e) ||
           sh_config_windows(c, sh_from_layer, first, a, e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_OUT_BIAS;     /* attention_bias is of q, k and v alone */
    return mixture_shape(a, c, 1, 1, e);
}

#define MIX .mix = {.route = SH_ROUTE_SIGMOID, .by_best_two = 1}

const struct sh_family sh_family_glm4_moe = {
    .special = "experts by corrected sigmoids, partial rotation",
    .name = "glm4_moe", .model_types = SH_WORDS("glm4_moe"),
    .architectures = SH_WORDS("Glm4MoeForCausalLM", "Glm4MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 0.5f, .rope = {.base = 10000}, MIX,
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_glm4_moe, .knows = " first_k_dense_replace num_nextn_predict_layers ", .shape = shape,
    .finish = sh_config_classic_rope};

/* The text part of GLM-4.5V, without the vision part. */
const struct sh_family sh_family_glm4v_moe = {
    .special = "text of GLM-4.5V: GLM-4.5",
    .name = "glm4v_moe", .model_types = SH_WORDS("glm4v_moe", "glm4v_moe_text"),
    .architectures = SH_WORDS("Glm4vMoeForConditionalGeneration", "Glm4vMoeTextModel"), .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 65536, .rotary_share = 0.5f, .rope = {.base = 10000}, MIX,
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_BIAS},
    .keys = keys_4v, .params = params, .knows = " first_k_dense_replace num_nextn_predict_layers ", .shape = shape,
    .finish = sh_config_classic_rope};

const struct sh_family sh_family_dots1 = {
    .special = "experts by corrected sigmoids, a norm of each query and key",
    .name = "dots1", .model_types = SH_WORDS("dots1"), .architectures = SH_WORDS("Dots1ForCausalLM", "Dots1Model"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, MIX, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = keys_dots, .params = params,
    .gguf = &sh_gguf_dots1, .only = SH_WORDS("moe_layer_freq=1"),
    .knows = " first_k_dense_replace moe_layer_freq sliding_window max_window_layers layer_types ",
    .shape = shape_dots, .finish = sh_config_whole_rope};
