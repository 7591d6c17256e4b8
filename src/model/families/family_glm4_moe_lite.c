/* SPDX-License-Identifier: Apache-2.0 */
/* GLM-4.7-Flash (Zhipu AI, 2026): DeepSeek-V3 with one group of experts in each layer after the first. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->latent.q_rank = sh_config_has(c, "q_lora_rank") ? a->latent.q_rank : 768;
    return sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float share = 1;
    if (sh_config_real(c, "partial_rotary_factor", 1, &share, e))
        return -1;
    return share < 1 ? sh_config_refuse(c, "partial_rotary_factor", "1", e) : sh_latent_finish(a, c, e);
}

const struct sh_family sh_family_glm4_moe_lite = {
    .special = "latent attention, experts by corrected sigmoids",
    .name = "glm4_moe_lite", .model_types = SH_WORDS("glm4_moe_lite"),
    .architectures = SH_WORDS("Glm4MoeLiteForCausalLM", "Glm4MoeLiteModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 202752, .rotary_share = 1, .rope = {.base = 10000},
              .latent = {.rank = 512, .d_rope = 64, .d_nope = 192, .d_v = 256},
              .mix = {.n = 64, .used = 4, .width = 1536, .groups = 1, .used_groups = 1, .scale = 1.8f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION},
    .keys = sh_deepseek_keys, .params = sh_deepseek_params, .gguf = &sh_gguf_deepseek,
    .only = SH_WORDS("mlp_bias=false"),
    .knows = " mlp_layer_types first_k_dense_replace num_local_experts num_nextn_predict_layers ", .shape = shape,
    .finish = finish};
