/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtral (Jiang et al., 2024): Mistral with experts, weighted by a softmax over the chosen ones. MiniMax-M2 (2025)
 * chooses experts by sigmoids with a correction, norms all queries of a token together, and rotates a part of each
 * head. Phi-3.5-MoE (Abdin et al., 2024) has layer norms and chooses two experts by sparsemixer. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

int sh_mixture_needs(const struct sh_config *c, int count, const char *key, struct sh_err *e)
{
    return count > 0 ? 0 : sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), key);
}

int sh_mixture_shared(struct sh_arch *a, const struct sh_config *c, const char *key, int usual, struct sh_err *e)
{
    int n = usual;
    if (sh_config_at_least(c, key, 0, 100000, &n, e))
        return -1;
    long long width = (long long)n * a->mix.width;
    a->mix.shared_width = width <= 100000000 ? (int)width : 0;
    return width <= 100000000 ? 0 : sh_config_refuse(c, key, "shared experts with a total width of at most 10^8", e);
}

int sh_mixture_after(struct sh_arch *a, const struct sh_config *c, const char *key, int usual, struct sh_err *e)
{
    int first = usual;
    if (sh_config_at_least(c, key, 0, 100000000, &first, e))
        return -1;
    for (int layer = 0; layer < a->n_layer && layer < first; layer++)
        sh_arch_keep_dense(a, layer);
    return 0;
}

int sh_mixture_listed(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"dense", 1}, {"sparse", 2}, {NULL, 0}};
    if (sh_config_is_set(c, "mlp_layer_types") && sh_config_length(c, "mlp_layer_types") <= 0)
        return sh_config_refuse(c, "mlp_layer_types", "a list of dense and sparse", e);
    if (!sh_config_has(c, "mlp_layer_types.0"))
        return sh_mixture_after(a, c, "first_k_dense_replace", usual, e);
    for (int i = 0; i < a->n_layer; i++) {
        int kind;
        if (sh_config_choice_at(c, "mlp_layer_types", i, kinds, &kind, e))
            return -1;
        if (kind == 1)
            sh_arch_keep_dense(a, i);
    }
    return 0;
}

int sh_mixture_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->mix.width = a->d_ff;
    return sh_mixture_needs(c, a->mix.n, sh_config_has(c, "num_experts") ? "num_experts" : "num_local_experts", e) ||
           sh_mixture_needs(c, a->mix.width, "intermediate_size", e) ? -1 : 0;
}

void sh_mixture_leave_one(struct sh_arch *a)
{
    a->flags &= a->mix.used > 1 ? ~0u : ~(unsigned)SH_MIX_NORMED;
}

#define COUNTS SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok")
#define KEYS \
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    COUNTS
#define START(base_of_rotation, eps) \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = eps, \
    .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = base_of_rotation}
#define ROUTER SH_ROUTER("block_sparse_moe.gate.weight"), SH_MIXTRAL_EXPERTS

static const struct sh_key keys[] = {KEYS, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, ROUTER, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_window_shape(a, c, e) || sh_mixture_shape(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_mixtral = {
    .special = "experts",
    .name = "mixtral", .model_types = SH_WORDS("mixtral"),
    .architectures = SH_WORDS("MixtralForCausalLM", "MixtralModel"), .prefixes = sh_llama_prefixes,
    .start = {START(1e6f, 1e-5f), .mix = {.used = 2, .route = SH_ROUTE_CHOSEN}, .flags = SH_LLAMA_FLAGS}, .keys = keys,
    .params = params,
    .gguf = &sh_llama_gguf, .knows = " sliding_window ", .shape = shape, .finish = sh_config_whole_rope};

/* ---- MiniMax-M2 ---- */

static const struct sh_key keys_m2[] = {KEYS, SH_COUNT_KEY(n_rot, 1e5, "rotary_dim"), {.json = {NULL}}};

static const struct sh_param params_m2[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, ROUTER,
    SH_CHOICE("block_sparse_moe.e_score_correction_bias"), {.name = NULL}};

/* Attention is full, 1 in attn_type_list, in every layer. */
static int shape_m2(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float share = 0;                            /* which comes before rotary_dim                      */
    if (sh_config_real(c, "partial_rotary_factor", 1, &share, e) ||
        sh_config_real(c, "rope_parameters.partial_rotary_factor", 1, &share, e))
        return -1;
    a->n_rot = share > 0 ? (int)((float)a->d_head * share) : a->n_rot;
    for (int i = 0; i < a->n_layer && sh_config_has(c, "attn_type_list.0"); i++) {
        char key[40];
        int kind = -1;
        snprintf(key, sizeof key, "attn_type_list.%d", i);
        if (sh_config_at_least(c, key, 0, 100, &kind, e))
            return -1;
        if (kind != 1)
            return sh_config_refuse(c, key, "1 (full attention)", e);
    }
    return sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) || sh_mixture_shape(a, c, e) ? -1 : 0;
}

static int count_m2(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)f;
    for (const char *const *only = sh_family_minimax_m2.only; *only; only++)
        if (sh_config_check_only(c, *only, e))
            return -1;
    return 0;
}

const struct sh_family sh_family_minimax_m2 = {
    .special = "experts by corrected sigmoids, a norm of all queries together",
    .name = "minimax_m2", .model_types = SH_WORDS("minimax_m2"),
    .architectures = SH_WORDS("MiniMaxM2ForCausalLM", "MiniMaxM2Model"), .prefixes = sh_llama_prefixes,
    .start = {START(5e6f, 1e-6f), .d_head = 128, .n_rot = 64, .mix = {.route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_WIDE | SH_MIX_NORMED},
    .keys = keys_m2, .params = params_m2,
    .gguf = &sh_gguf_minimax_m2,
    .only = SH_WORDS("use_qk_norm=true", "qk_norm_type=\"per_layer\"", "shared_intermediate_size=0",
                     "use_routing_bias=true", "scoring_func=\"sigmoid\""),
    .pattern = "G", .knows = " attn_type_list ", .shape = shape_m2, .finish = sh_config_classic_rope,
    .count = count_m2};

/* ---- Phi-3.5-MoE ---- */

static const struct sh_key keys_phi[] = {
    KEYS, SH_REAL_KEY(mix.jitter, 1, "router_jitter_noise"), SH_FLAG_KEY(SH_HAS_HEAD_BIAS, "lm_head_bias"),
    {.json = {NULL}}};

static const struct sh_param params_phi[] = {
    SH_LLAMA_ENDS, SH_VECTOR(HEAD_B, "lm_head.bias", VOCAB, SH_HAS_HEAD_BIAS, SH_WHOLE_NAME),
    SH_NORM_PAIR(FINAL_NORM, "norm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0), SH_LLAMA_ATTENTION,
    SH_NORM_PAIR(MLP_NORM, SH_LAYER "post_attention_layernorm", 0), ROUTER, {.name = NULL}};

const struct sh_family sh_family_phimoe = {
    .special = "experts by sparsemixer, layer norms with biases",
    .name = "phimoe", .model_types = SH_WORDS("phimoe"),
    .architectures = SH_WORDS("PhiMoEForCausalLM", "PhimoeForCausalLM", "PhimoeModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START_WITH(1e6f), .act = SH_ACT_SILU, .max_pos = 131072, .rotary_share = 1,
              .mix = {.n = 16, .used = 2, .route = SH_ROUTE_SPARSEMIXER, .jitter = 0.01f}, .flags = SH_LLAMA_FLAGS},
    .keys = keys_phi, .params = params_phi,
    .gguf = &sh_gguf_phimoe, .only = SH_WORDS("num_experts_per_tok=2"), .knows = " sliding_window ",
    .shape = shape, .finish = sh_config_classic_rope};
