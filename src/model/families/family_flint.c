/* SPDX-License-Identifier: Apache-2.0 */
/* Flint (2026): a norm of each query and key, sinks, windows with rotation and other layers without positions, experts
 * by sigmoids and one for all tokens. */
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_VECTOR(SINKS, SH_LAYER "self_attn.softmax_offset", HEADS, 0, 0),
    SH_VECTOR(SINKS, SH_LAYER "self_attn.sinks", HEADS, 0, 0), SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_expert"), {.name = NULL}};

/* All but the first two, every fourth and the last. */
static int rule(int layer, int n_layer)
{
    return layer >= 2 && layer % 4 != 1 && layer != n_layer - 1;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char plain[] = "mlp_only_layers";
    if (sh_qwen_mixture_shape(a, c, e) ||
        sh_config_count(c, "shared_expert_intermediate_size", (int)1e8, &a->mix.shared_width, e))
        return -1;
    if (!sh_config_has(c, plain) || sh_config_is_null(c, plain))
        for (int layer = 0; layer < 2 && layer < a->n_layer; layer++)
            sh_arch_keep_dense(a, layer);
    if (sh_config_is_null(c, "sliding_window"))
        return sh_config_refuse(c, "sliding_window", "a whole number", e);
    memset(a->whole, 0, sizeof a->whole);       /* what keys of Qwen have said */
    if (sh_config_window(c, 513, a, e) || sh_config_windows(c, rule, a->n_layer, a, e))
        return -1;
    for (int layer = 0; layer < a->n_layer; layer++)
        if (!sh_arch_window(a, layer))
            sh_arch_keep_still(a, layer);
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(sinks, 1), {.json = {NULL}}};

const struct sh_family sh_family_flint = {
    .special = "windows with rotation, other layers without positions; sinks, experts by sigmoids and a shared one",
    .name = "flint", .model_types = SH_WORDS("flint"), .architectures = SH_WORDS("FlintForCausalLM", "FlintModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .n_kv_head = 4, .d_head = 128,
              .mix = {.n = 256, .used = 6, .width = 512, .shared_width = 1024, .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED | SH_HAS_SINKS},
    .keys = sh_qwen_mixture_keys, .params = params, .facts = facts,
    .knows = " sliding_window layer_types mlp_only_layers decoder_sparse_step use_sliding_window max_window_layers "
             "shared_expert_intermediate_size ",
    .shape = shape, .finish = sh_config_whole_rope};
