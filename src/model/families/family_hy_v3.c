/* SPDX-License-Identifier: Apache-2.0 */
/* Hy3 (Tencent, 2026): LLaMA with a norm of each query and key and, after the first layer, experts chosen by sigmoids
 * with a correction, and a shared one. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_REAL_KEY(mix.scale, 1e6, "router_scaling_factor"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.router.gate.weight"), SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.expert_bias"),
    SH_CHOICE("mlp.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_mlp"),
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_mixture_shared(a, c, "num_shared_experts", 1, e) || sh_mixture_listed(a, c, 1, e))
        return -1;
    return a->mix.shared_width ? 0 : sh_config_refuse(c, "num_shared_experts", "at least 1", e);
}

const struct sh_family sh_family_hy_v3 = {
    .special = "experts by corrected sigmoids, a shared expert, a norm of each query and key",
    .name = "hy_v3", .model_types = SH_WORDS("hy_v3"), .architectures = SH_WORDS("HYV3ForCausalLM", "HYV3Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 11158840), .n_kv_head = 8, .d_head = 128,
              .mix = {.n = 192, .used = 8, .width = 1536, .scale = 2.826f, .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_hy_v3,
    .only = SH_WORDS("mlp_bias=false", "qk_norm=true", "route_norm=true"),
    .knows = " mlp_layer_types first_k_dense_replace num_nextn_predict_layers ", .shape = shape,
    .finish = sh_config_whole_rope};
