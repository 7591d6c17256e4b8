/* SPDX-License-Identifier: Apache-2.0 */
/* Granite (IBM, 2024): LLaMA with factors of embeddings, scores and the blocks' outputs, and a divisor of logits. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, {.json = {NULL}}};

int sh_granite_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->logit_scale = 1 / a->logit_scale;        /* until here it is the divisor   */
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_granite = {
    .special = "multipliers of embedding, scores, residuals and logits",
    .name = "granite", .model_types = SH_WORDS("granite", "granite4_vision_text"),
    .architectures = SH_WORDS("GraniteForCausalLM", "GraniteModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = sh_llama_params,
    .gguf = &sh_gguf_granite, .finish = sh_granite_finish};

/* The text part of Granite for Docling (2026): Granite with factors by default. */
static int shape_docling(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->n_kv_head = sh_config_is_null(c, "num_key_value_heads") ? a->n_head : a->n_kv_head;
    return sh_wrapper_head(a, c, 1, e);
}

const struct sh_family sh_family_granite_docling = {
    .special = "text of Granite for Docling: Granite",
    .name = "granite_docling", .model_types = SH_WORDS("granite_docling_text"),
    .architectures = SH_WORDS("GraniteDoclingTextModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .n_kv_head = 4, .scale = 0.015625f, .embed_scale = 12,
              .residual_scale = 0.263f, .logit_scale = 4, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = keys, .params = sh_llama_params, .shape = shape_docling, .finish = sh_granite_finish};

/* Granite's mixtures (2024): the same with experts, gate and up of which are slices of one tensor. */
#define IN "block_sparse_moe.input_linear.weight"

static const struct sh_key keys_moe[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), {.json = {NULL}}};

#define PARAMS_MOE \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, \
    SH_ROUTER("block_sparse_moe.router.layer.weight"), SH_EXPERT_PART(GATE, IN, EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(UP, IN, EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(DOWN, "block_sparse_moe.output_linear.weight", MODEL, EXPERT_FF, 0)
/* Some models have a shared expert. */
#define SHARED_IN SH_LAYER "shared_mlp.input_linear.weight"
#define SHARED_OUT SH_LAYER "shared_mlp.output_linear.weight"
#define NEXT_TO(part, tensor, out, in) \
    {.role = SH_SHARED_##part##_W, .name = tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, .needs = SH_SHARED_LAYER}
#define ALL_SHARED \
    NEXT_TO(GATE, SHARED_IN, SHARED_FF, MODEL), NEXT_TO(UP, SHARED_IN, SHARED_FF, MODEL), \
    NEXT_TO(DOWN, SHARED_OUT, MODEL, SHARED_FF)

static const struct sh_param params_moe[] = {PARAMS_MOE, ALL_SHARED, {.name = NULL}};

static int shape_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_at_least(c, "shared_intermediate_size", 0, 100000000, &a->mix.shared_width, e) ||
           sh_mixture_shape(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_granitemoe = {
    .special = "experts in one tensor, Granite's multipliers",
    .name = "granitemoe", .model_types = SH_WORDS("granitemoe", "granitemoeshared"),
    .architectures = SH_WORDS("GraniteMoeForCausalLM", "GraniteMoeModel", "GraniteMoeSharedForCausalLM",
                              "GraniteMoeSharedModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN},
              .flags = SH_LLAMA_FLAGS},
    .keys = keys_moe, .params = params_moe,
    .gguf = &sh_gguf_granitemoe, .shape = shape_moe, .finish = sh_granite_finish};

/* Granite 4 (2025): attention in a few layers, mostly without positions, Mamba-2 in the others (recurrent.c); a shared
 * feed-forward block, with or without experts next to it. */
static const struct sh_key keys_hybrid[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, SH_MAMBA_KEYS, SH_COUNT_KEY(mix.shared_width, 1e8, "shared_intermediate_size"),
    {.json = {NULL}}};

#define PLAIN(part, tensor, out, in) \
    {.role = SH_##part##_W, .name = tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, .unless = SH_EXPERT_LAYER}

static const struct sh_param params_hybrid[] = {
    PARAMS_MOE, ALL_SHARED, SH_MAMBA_2(SH_LAYER "mamba."), PLAIN(GATE, SHARED_IN, FF, MODEL),
    PLAIN(UP, SHARED_IN, FF, MODEL), PLAIN(DOWN, SHARED_OUT, MODEL, FF), {.name = NULL}};

static int shape_hybrid(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"attention", SH_BLOCK_ATTENTION}, {"full_attention", SH_BLOCK_ATTENTION}, {"mamba", SH_BLOCK_RECURRENT},
        {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    static const struct sh_word positions[] = {
        {"rope", SH_POS_ROTARY}, {"nope", SH_POS_NONE}, {NULL, 0}};
    int kind = SH_POS_NONE;
    const char *list = sh_config_has(c, "layer_types.0") ? "layer_types" : "layers_block_type";
    a->mix.n = 8;
    if (sh_config_at_least(c, "num_local_experts", 0, 100000, &a->mix.n, e) ||
        sh_config_at_least(c, "num_experts_per_tok", !!a->mix.n, 100000, &a->mix.used, e) ||
        sh_config_choice(c, "position_embedding_type", positions, &kind, e) ||
        sh_config_blocks(c, list, kinds, a, e))
        return -1;
    int rotates = kind == SH_POS_ROTARY;
    if (sh_config_flag(c, "gguf.rotates", &rotates, e))
        return -1;
    a->pos = rotates ? SH_POS_ROTARY : SH_POS_NONE;
    a->mix.width = a->mix.n ? a->d_ff : 0;
    if (!a->mix.n) {
        a->d_ff = sh_config_is_gguf(c) ? a->d_ff : a->mix.shared_width;
        a->mix.shared_width = a->mix.used = 0;
    }
    return sh_mamba_shape(a, c, e);
}

static int finish_hybrid(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layer_types", a, e) || sh_granite_finish(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_granitemoehybrid = {
    .special = "state-space layers (Mamba-2), attention in a few, experts next to a plain block",
    .name = "granitemoehybrid", .model_types = SH_WORDS("granitemoehybrid"),
    .architectures = SH_WORDS("GraniteMoeHybridForCausalLM", "GraniteMoeHybridModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, SH_MAMBA_2_START,
              .mix = {.used = 2, .shared_width = 1024, .route = SH_ROUTE_CHOSEN}, .flags = SH_LLAMA_FLAGS},
    .keys = keys_hybrid, .params = params_hybrid,
    .gguf = &sh_gguf_granitemoehybrid, .only = SH_WORDS("hidden_act=\"silu\""),
    .knows = " layer_types layers_block_type num_local_experts ", .shape = shape_hybrid, .finish = finish_hybrid};
