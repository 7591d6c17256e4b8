/* SPDX-License-Identifier: Apache-2.0 */
/* Laguna (Poolside, 2026): a softplus gate for each head or element; layers with a window have rotary parameters of
 * their own; after the first layer, experts chosen by sigmoids with a correction, and a shared one. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"),
    SH_COUNT_KEY(mix.shared_width, 1e8, "shared_expert_intermediate_size"),
    SH_REAL_KEY(mix.scale, 1e6, "moe_routed_scaling_factor"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_MATRIX(ATTN_GATE_W, SH_LAYER "self_attn.g_proj.weight", GATES, MODEL, 0), SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.experts.e_score_correction_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_expert"),
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->gates_heads = sh_config_is(c, "gating", "true") || sh_config_is(c, "gating", "\"per-head\"");
    if (!a->gates_heads && !sh_config_is(c, "gating", "\"per-element\""))
        return sh_config_refuse(c, "gating", "true, per-head or per-element", e);
    return sh_config_window(c, 512, a, e) || sh_config_windows(c, sh_but_each, 1, a, e) ||
           sh_config_read_sizes(c, a, 0, e) || sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float cap = 0;
    if (sh_config_real(c, "moe_router_logit_softcapping", 1e6, &cap, e) || sh_config_ropes_by_kind(a, c, e))
        return -1;
    if (!sh_config_is_filled(c, "rope_parameters"))
        a->n_rot = a->d_head / 2;
    if (a->n_rot % 2)
        return sh_config_refuse(c, "head_dim", "a multiple of 4", e);
    return cap > 0 ? sh_config_refuse(c, "moe_router_logit_softcapping", "0", e) : 0;
}

const struct sh_family sh_family_laguna = {
    .special = "gates by softplus, windows with rotation of their own, experts by corrected sigmoids",
    .name = "laguna", .model_types = SH_WORDS("laguna"), .architectures = SH_WORDS("LagunaForCausalLM", "LagunaModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 500000), .n_kv_head = 8, .d_head = 128, .local_rope = {.base = 10000},
              .gate_act = SH_ACT_SOFTPLUS,
              .mix = {.n = 256, .used = 8, .width = 512, .shared_width = 512, .scale = 1, .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_ATTENTION_GATE | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_laguna,
    .only = SH_WORDS("moe_apply_router_weight_on_input=false"),
    .knows = " sliding_window layer_types mlp_layer_types first_k_dense_replace num_attention_heads_per_layer gating ",
    .shape = shape, .finish = finish};
