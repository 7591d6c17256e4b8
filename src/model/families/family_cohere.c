/* SPDX-License-Identifier: Apache-2.0 */
/* Cohere's Command R (2024): both blocks read one layer norm without bias, neighbouring elements rotate together,
 * logits are scaled; larger models norm queries and keys, each head with weights of its own. Command R7B and A
 * (cohere2): a window in three of four layers, and no rotation in the others; cohere2_moe: the same with experts.
 * North Micro Vision (cohere_compass, 2026): each kind of layers has a rotation of its own, of two halves, or none. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(logit_scale, 1e6, "logit_scale"), SH_FLAG_KEY(SH_HAS_QK_NORM | SH_QK_NORM_EACH, "use_qk_norm"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_VECTORS(Q_NORM_W, SH_LAYER "self_attn.q_norm.weight", HEAD, HEADS, SH_HAS_QK_NORM),
    SH_VECTORS(K_NORM_W, SH_LAYER "self_attn.k_norm.weight", HEAD, KV_HEADS, SH_HAS_QK_NORM),
    SH_LLAMA_FEED, {.name = NULL}};

/* In models of text and pictures, logits are not multiplied by the factor, as in transformers. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_wrapped(c))
        a->logit_scale = 1;
    return sh_config_classic_rope(a, c, e);
}

#define START(base_of_rotation) \
    .norm = SH_NORM_LAYER, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, \
    .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1, .rope = {.base = base_of_rotation}, .logit_scale = 0.0625f, \
    .flags = SH_LLAMA_FLAGS | SH_PARALLEL | SH_ONE_NORM | SH_IN_PAIRS | SH_TIED_HEAD

const struct sh_family sh_family_cohere = {
    .special = "parallel blocks on one norm, rotation of neighbours, scaled logits",
    .name = "cohere", .model_types = SH_WORDS("cohere"), .architectures = SH_WORDS("CohereForCausalLM", "CohereModel"),
    .prefixes = sh_llama_prefixes, .start = {START(500000)}, .keys = keys, .params = params,
    .gguf = &sh_gguf_cohere,
    .finish = finish};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 4;
    if (sh_config_window(c, 4096, a, e) || sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
        sh_config_windows(c, sh_but_each, period, a, e))
        return -1;
    sh_config_still_globals(a);
    return 0;
}

const struct sh_family sh_family_cohere2 = {
    .special = "parallel blocks; windows with rotation, other layers without positions",
    .name = "cohere2", .model_types = SH_WORDS("cohere2"),
    .architectures = SH_WORDS("Cohere2ForCausalLM", "Cohere2Model"), .prefixes = sh_llama_prefixes,
    .start = {START(10000)}, .keys = keys, .params = params,
    .gguf = &sh_gguf_cohere2,
    .only = SH_WORDS("use_qk_norm=false", "use_gated_activation=true", "use_parallel_block=true", "rotary_pct=1.0",
                     "position_embedding_type=\"rope_gptj\"", "order_of_interleaved_layers=\"local_attn_first\""),
    .knows = " sliding_window sliding_window_pattern layer_types ", .shape = shape, .finish = finish};

/* ---- mixtures ---- */

static const struct sh_key keys_moe[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(logit_scale, 1e6, "logit_scale"), SH_COUNT_KEY(mix.n, 1e5, "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"), {.json = {NULL}}};

static const struct sh_param params_moe[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0), SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

/* Layers without experts come first, with windows by a period of their own; after them, layers are counted anew. */
static int windows_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 4, dense_period = 1, dense = 0;
    if (sh_config_window(c, 4096, a, e) || sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
        sh_config_count(c, "prefix_dense_sliding_window_pattern", (int)1e8, &dense_period, e) ||
        sh_config_at_least(c, "first_k_dense_replace", 0, (int)1e8, &dense, e) || sh_mixture_listed(a, c, 0, e))
        return -1;
    if (sh_config_has(c, "layer_types.0")) {
        if (sh_config_windows(c, sh_but_each, period, a, e))
            return -1;
    } else {
        for (int i = 0; i < a->n_layer; i++)
            if (!(i < dense ? sh_but_each(i, dense_period) : sh_but_each(i - dense, period)))
                sh_arch_see_all(a, i);
    }
    for (int i = 0; i < a->n_layer; i++)
        if (!sh_arch_window(a, i) && (dense_period != 1 || sh_arch_flags(a, i) & SH_EXPERT_LAYER))
            sh_arch_keep_still(a, i);
    return 0;
}

static int shape_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word routes[] = {{"softmax", SH_ROUTE_CHOSEN}, {"sigmoid", SH_ROUTE_CHOSEN_SIGMOID},
                                           {NULL, 0}};
    static const struct sh_word ways[] = {{"average", 1}, {"sum", 0}, {NULL, 0}};
    int route = SH_ROUTE_CHOSEN, averages = 1;
    a->mix.width = a->d_ff;
    if (sh_config_choice(c, "expert_selection_fn", routes, &route, e) ||
        sh_config_choice(c, "shared_expert_combination_strategy", ways, &averages, e) ||
        sh_mixture_shared(a, c, "num_shared_experts", 0, e) || windows_moe(a, c, e) ||
        sh_config_count(c, "prefix_dense_intermediate_size", (int)1e8, &a->d_ff, e))
        return -1;
    a->mix.route = (enum sh_route)route;
    if (averages && a->mix.shared_width)
        a->mix.scale = a->mix.shared_scale = 0.5f;
    return 0;
}

static int finish_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_set(c, "rms_norm_eps")) {
        a->norm = SH_NORM_RMS;
        if (sh_config_real(c, "rms_norm_eps", 1, &a->norm_eps, e))
            return -1;
    }
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_cohere2_moe = {
    .special = "parallel blocks; windows with rotation, other layers without positions; experts",
    .name = "cohere2_moe", .model_types = SH_WORDS("cohere2_moe"),
    .architectures = SH_WORDS("Cohere2MoeForCausalLM", "Cohere2MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {START(10000) | SH_MIX_NORMED, .d_head = 128, .mix = {.n = 8, .used = 2}}, .keys = keys_moe,
    .params = params_moe, .gguf = &sh_gguf_cohere2_moe,
    .only = SH_WORDS("use_qk_norm=false", "use_gated_activation=true", "use_parallel_block=true", "rotary_pct=1.0",
                     "position_embedding_type=\"rope_gptj\"", "rope_scaling=null"),
    .knows = " sliding_window sliding_window_pattern layer_types mlp_layer_types first_k_dense_replace "
             "prefix_dense_intermediate_size prefix_dense_sliding_window_pattern ",
    .shape = shape_moe, .finish = finish_moe};

/* ---- rotation by kind ---- */

static int shape_compass(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int tied = 0;                       /* of a model with pictures, whatever the text part says */
    if (sh_config_has_text(c)) {
        if (sh_config_outer_flag(c, "tie_word_embeddings", &tied, e))
            return -1;
        a->flags = tied ? a->flags | SH_TIED_HEAD : a->flags & ~(unsigned)SH_TIED_HEAD;
    }
    if (sh_config_is_null(c, "sliding_window"))
        return sh_config_refuse(c, "sliding_window", "a whole number", e);
    return sh_config_window(c, 4096, a, e) || sh_config_windows(c, sh_from_layer, a->n_layer, a, e) ? -1 : 0;
}

/* Positions in a text are equal on all axes, so the sections of the rotation (mrope_section) are without effect. */
static int finish_compass(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const kinds[] = {"rope_parameters.full_attention", "rope_parameters.sliding_attention"};
    int turns = 0;
    for (int i = 0; i < a->n_layer; i++) {
        const char *kind = kinds[sh_arch_window(a, i) > 0];
        char base[64];
        snprintf(base, sizeof base, "%s.rope_theta", kind);
        if (!sh_config_has(c, kind))
            return sh_config_refuse(c, kind, "the parameters of the rotation, or null for none", e);
        if (sh_config_is_null(c, kind))
            sh_arch_keep_still(a, i);
        else if (!sh_config_is_set(c, base))
            return sh_config_refuse(c, base, "the base of the rotation", e);
        else
            turns = 1;
    }
    return turns ? sh_config_whole_ropes_by_kind(a, c, e) : 0;
}

const struct sh_family sh_family_cohere_compass = {
    .special = "parallel blocks; windows, each kind of layers with a rotation of its own or none",
    .name = "cohere_compass", .model_types = SH_WORDS("cohere_compass_text", "cohere_compass"),
    .architectures = SH_WORDS("CohereCompassForCausalLM", "CohereCompassTextModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1, .rope = {.base = 10000},
              .local_rope = {.base = 10000}, .flags = SH_LLAMA_FLAGS | SH_PARALLEL | SH_ONE_NORM | SH_TIED_HEAD},
    .keys = keys, .params = params, .knows = " sliding_window layer_types ", .shape = shape_compass,
    .finish = finish_compass};
