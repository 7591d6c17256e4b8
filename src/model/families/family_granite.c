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
    .name = "granite", .model_types = SH_WORDS("granite"),
    .architectures = SH_WORDS("GraniteForCausalLM", "GraniteModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .scale = 1, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = sh_llama_params, .finish = sh_granite_finish};
