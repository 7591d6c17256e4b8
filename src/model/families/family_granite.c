/* SPDX-License-Identifier: Apache-2.0 */
/* Granite (IBM, 2024): LLaMA with numbers that multiply embeddings, scores and what blocks add, and one that divides
 * logits. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, {.json = {NULL}}};

int sh_granite_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->logit_scale = 1 / a->logit_scale;        /* so far the number that divides */
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_granite = {
    .special = "multipliers of embedding, scores, residuals and logits",
    .name = "granite", .model_types = SH_WORDS("granite"),
    .architectures = SH_WORDS("GraniteForCausalLM", "GraniteModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = sh_llama_params,
    .gguf = &sh_gguf_granite, .finish = sh_granite_finish};

/* Granite's mixtures (2024): the same with experts, gate and up of which are slices of one tensor. */
#define IN "block_sparse_moe.input_linear.weight"

static const struct sh_key keys_moe[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), {.json = {NULL}}};

static const struct sh_param params_moe[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_ROUTER("block_sparse_moe.router.layer.weight"), SH_EXPERT_PART(GATE, IN, EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, IN, EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "block_sparse_moe.output_linear.weight", MODEL, EXPERT_FF, 0), {.name = NULL}};

const struct sh_family sh_family_granitemoe = {
    .special = "experts in one tensor, Granite's multipliers",
    .name = "granitemoe", .model_types = SH_WORDS("granitemoe"),
    .architectures = SH_WORDS("GraniteMoeForCausalLM", "GraniteMoeModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN},
              .flags = SH_LLAMA_FLAGS},
    .keys = keys_moe, .params = params_moe,
    .gguf = &sh_gguf_granitemoe, .shape = sh_mixture_shape, .finish = sh_granite_finish};
