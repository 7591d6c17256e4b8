/* SPDX-License-Identifier: Apache-2.0 */
/* The text part of Aria (Rhymes AI, 2024): LLaMA with routed and shared experts in every layer, without the vision
 * part. Experts are stored in stacks [expert, in, out], gate before up, under two names. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "moe_num_experts"), SH_COUNT_KEY(mix.used, 1e5, "moe_topk"), {.json = {NULL}}};

#define STACKS(in, out) \
    SH_EXPERT_PART(GATE, in, EXPERT_FF, MODEL, SH_TRANSPOSED), \
    SH_EXPERT_PART(UP, in, EXPERT_FF, MODEL, SH_TRANSPOSED), \
    SH_EXPERT_PART(DOWN, out, MODEL, EXPERT_FF, SH_TRANSPOSED)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_ROUTER("mlp.router.weight"),
    STACKS("mlp.experts.fc1.weight", "mlp.experts.fc2.weight"),
    STACKS("mlp.experts.gate_up_proj", "mlp.experts.down_proj"), SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->mix.width = a->d_ff ? a->d_ff : 4096;
    return sh_mixture_shared(a, c, "moe_num_shared_experts", 2, e);
}

const struct sh_family sh_family_aria = {
    .special = "text of Aria: experts and shared experts in every layer",
    .name = "aria", .model_types = SH_WORDS("aria_text"),
    .architectures = SH_WORDS("AriaTextForCausalLM", "AriaTextModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN}, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .only = SH_WORDS("mlp_bias=false", "hidden_act=\"silu\""), .shape = shape,
    .finish = sh_config_whole_rope};
