/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtral (Jiang et al., 2024): Mistral with eight feed-forward blocks, of which each token takes two. Its
 * config is read so that its memory can be counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const char *const model_types[] = {"mixtral", NULL};
static const char *const architectures[] = {"MixtralForCausalLM", "MixtralModel", NULL};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->n_expert = 8;
    a->n_expert_used = 2;
    a->d_expert = a->d_ff;
    return sh_config_whole_rope(a, c, e) || sh_config_window(c, 0, a, e) ||
           sh_config_count(c, "num_local_experts", 1 << 16, &a->n_expert, e) ||
           sh_config_count(c, "num_experts_per_tok", a->n_expert, &a->n_expert_used, e) ? -1 : 0;
}

const struct sh_family sh_family_mixtral = {
    .name = "mixtral",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = sh_llama_prefixes,
    .refusal = "mixtures of experts cannot be run, only their capacity can be computed",
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys,
    .finish = finish,
};
