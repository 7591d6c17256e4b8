/* SPDX-License-Identifier: Apache-2.0 */
/* Granite Swash (IBM, 2026): Granite, dense or with experts, with a window in three of four layers, a sink for each
 * head, and a base of rotation for each layer. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, {.json = {NULL}}};
static const struct sh_key keys_moe[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, SH_COUNT_KEY(mix.n, 1e5, "num_local_experts", "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), {.json = {NULL}}};

#define COMMON \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, \
    SH_VECTOR(SINKS, SH_LAYER "self_attn.sinks", HEADS, 0, 0)
#define IN "block_sparse_moe.experts.gate_up_proj"
#define SHARED_IN "shared_mlp.input_linear.weight"

static const struct sh_param params[] = {COMMON, SH_LLAMA_FEED, {.name = NULL}};
static const struct sh_param params_moe[] = {
    COMMON, SH_ROUTER("block_sparse_moe.router.weight"), SH_EXPERT_PART(GATE, IN, EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, IN, EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "block_sparse_moe.experts.down_proj", MODEL, EXPERT_FF, 0),
    SH_SHARED_PART(GATE, SHARED_IN, SHARED_FF, MODEL), SH_SHARED_PART(UP, SHARED_IN, SHARED_FF, MODEL),
    SH_SHARED_PART(DOWN, "shared_mlp.output_linear.weight", MODEL, SHARED_FF), {.name = NULL}};

static int but_first(int layer, int period)
{
    return layer % period != 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 128, a, e) || sh_config_windows(c, but_first, 4, a, e) ? -1 : 0;
}

static int shape_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_at_least(c, "shared_intermediate_size", 0, 100000000, &a->mix.shared_width, e) ||
           sh_mixture_shape(a, c, e) || shape(a, c, e) ? -1 : 0;
}

/* layer_rope_theta: a base for each layer, 0 if it does not rotate; one for layers with a window, one for others. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float base[2] = {0, 0};
    if (sh_granite_finish(a, c, e))
        return -1;
    if (sh_config_length(c, "layer_rope_theta") <= 0)
        return 0;
    if (sh_config_length(c, "layer_rope_theta") != a->n_layer)
        return sh_config_refuse(c, "layer_rope_theta", "one base of the rotation for each layer", e);
    for (int i = 0; i < a->n_layer; i++) {
        char key[40];
        float own = 0, *of_kind = &base[!sh_arch_window(a, i)];
        snprintf(key, sizeof key, "layer_rope_theta.%d", i);
        if (sh_config_real(c, key, 1e12, &own, e))
            return -1;
        if (!(own > 0))
            sh_arch_keep_still(a, i);
        else if (!(own > 1) || (*of_kind > 0 && (own < *of_kind || own > *of_kind)))
            return sh_config_refuse(c, key, "0, or above 1 and as in the other layers with (or without) a window",
                                    e);
        else
            *of_kind = own;
    }
    a->local_rope = a->rope;
    a->local_rope.base = base[0] > 0 ? base[0] : a->rope.base;
    a->rope.base = base[1] > 0 ? base[1] : a->rope.base;
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(sinks, 1), {.json = {NULL}}};

const struct sh_family sh_family_granite_swa = {
    .special = "windows, sinks, Granite's multipliers",
    .name = "granite_swa", .model_types = SH_WORDS("granite_swa"),
    .architectures = SH_WORDS("GraniteSWAForCausalLM", "GraniteSWAModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .scale = 1, .flags = SH_LLAMA_FLAGS | SH_HAS_SINKS | SH_TIED_HEAD},
    .keys = keys, .params = params, .gguf = &sh_gguf_granite_swa, .facts = facts,
    .knows = " sliding_window layer_types ", .shape = shape, .finish = finish};

const struct sh_family sh_family_granitemoe_swa = {
    .special = "windows, sinks, experts, Granite's multipliers",
    .name = "granitemoe_swa", .model_types = SH_WORDS("granitemoe_swa"),
    .architectures = SH_WORDS("GraniteMoeSWAForCausalLM", "GraniteMoeSWAModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN},
              .flags = SH_LLAMA_FLAGS | SH_HAS_SINKS},
    .keys = keys_moe, .params = params_moe, .gguf = &sh_gguf_granite_swa, .facts = facts,
    .knows = " sliding_window layer_types shared_intermediate_size ", .shape = shape_moe, .finish = finish};
