/* SPDX-License-Identifier: Apache-2.0 */
/* Llama 4 (Meta, 2025): for every three layers that attend within chunks, one that sees everything, does not rotate and
 * scales its queries by position. Queries and keys are rotated in neighbouring pairs and then normed without weights.
 * Each token uses one expert of a mixture, which reads its input times a sigmoid, and a shared one. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define FEED "feed_forward."

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(d_ff, 1e8, "intermediate_size_mlp"), SH_COUNT_KEY(mix.width, 1e8, "intermediate_size"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_FLAG_KEY(SH_HAS_QK_NORM, "use_qk_norm"), SH_REAL_KEY(temper, 1e6, "attn_scale"),
    SH_REAL_KEY(temper_length, 1e9, "floor_scale"), SH_COUNT_KEY(window, 1e8, "attention_chunk_size"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_DENSE(GATE, FEED "gate_proj", FF, MODEL), SH_DENSE(UP, FEED "up_proj", FF, MODEL),
    SH_DENSE(DOWN, FEED "down_proj", MODEL, FF), SH_ROUTER(FEED "router.weight"),
    SH_EXPERT_PART(GATE, FEED "experts.gate_up_proj", EXPERT_FF, MODEL, SH_TRANSPOSED),
    SH_EXPERT_PART(UP, FEED "experts.gate_up_proj", EXPERT_FF, MODEL, SH_TRANSPOSED),
    SH_EXPERT_PART(DOWN, FEED "experts.down_proj", MODEL, EXPERT_FF, SH_TRANSPOSED),
    SH_EXPERTS(FEED "experts", "gate_proj", "up_proj", "down_proj"),      /* as quantisers split them */
    SH_SHARED(FEED "shared_expert"),
    {.name = NULL}};

/* The layers with experts, listed or every so many. */
static int mixtures(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int step = 1, n = sh_config_length(c, "moe_layers");
    if (sh_config_count(c, "interleave_moe_layer_step", 100000000, &step, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        if (n > 0 || (i + 1) % step)
            sh_arch_keep_dense(a, i);
    for (int i = 0; i < n; i++) {
        char key[40];
        int layer = -1;
        snprintf(key, sizeof key, "moe_layers.%d", i);
        if (sh_config_at_least(c, key, 0, a->n_layer - 1, &layer, e))
            return -1;
        if (layer >= 0)
            a->mix.dense[layer / 64] &= ~((uint64_t)1 << layer % 64);
    }
    return 0;
}

/* Layers that do not rotate see everything. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int listed = sh_config_has(c, "no_rope_layers.0");
    if (sh_mixture_needs(c, a->mix.n, "num_local_experts", e) ||
        sh_mixture_needs(c, a->mix.width, "intermediate_size", e) || mixtures(a, c, e))
        return -1;
    a->mix.shared_width = a->mix.width;
    for (int i = 0; i < a->n_layer; i++) {
        char key[40];
        int turns = listed ? -1 : (i + 1) % 4 != 0;
        snprintf(key, sizeof key, "no_rope_layers.%d", i);
        if (listed && sh_config_at_least(c, key, 0, 1, &turns, e))
            return -1;
        if (turns < 0)
            return sh_config_refuse(c, key, "0 or 1 for each layer", e);
        if (!turns) {
            sh_arch_keep_still(a, i);
            sh_arch_see_all(a, i);
        }
    }
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int tempers = !sh_config_has(c, "attn_temperature_tuning") || sh_config_is_set(c, "attn_temperature_tuning");
    a->temper = tempers ? a->temper : 0;
    if (sh_config_is_gguf(c) && a->mix.n == 128)        /* Maverick: no key of these files says it */
        a->flags &= ~(unsigned)SH_HAS_QK_NORM;
    return sh_config_whole_rope(a, c, e);
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    for (char *at = f->pattern; *at; at++)
        *at = *at == 'L' ? 'C' : *at;
    f->qk_norm = 0;
    return 0;
}

const struct sh_family sh_family_llama4 = {
    .special = "chunks, layers without positions, temperature, experts",
    .name = "llama4", .model_types = SH_WORDS("llama4_text"),
    .architectures = SH_WORDS("Llama4ForCausalLM", "Llama4TextModel", "Llama4ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 500000}, .d_head = 128,
              .window = 8192,
              .temper = 0.1f, .temper_length = 8192, .temper_offset = 1,
              .mix = {.used = 1, .route = SH_ROUTE_SIGMOID, .weighs_input = 1},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_LATE | SH_IN_PAIRS | SH_CHUNKED | SH_TEMPER_STILL},
    .keys = keys, .params = params, .gguf = &sh_gguf_llama4, .only = SH_WORDS("attention_bias=false"),
    .knows = " no_rope_layers moe_layers layer_types interleave_moe_layer_step ", .shape = shape, .finish = finish,
    .count = count};
