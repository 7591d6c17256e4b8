/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 3 as mixtures of experts (Yang et al., 2025). The config is read so that the memory of their keys and
 * values can be counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const char *const model_types[] = {"qwen3_moe", NULL};
static const char *const architectures[] = {"Qwen3MoeForCausalLM", "Qwen3MoeModel", NULL};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->n_expert = 128;
    a->n_expert_used = 8;
    a->d_expert = 768;
    return sh_qwen_finish(a, c, e) || sh_config_count(c, "num_experts", 1 << 16, &a->n_expert, e) ||
           sh_config_count(c, "num_experts_per_tok", a->n_expert, &a->n_expert_used, e) ||
           sh_config_count(c, "moe_intermediate_size", (int)1e8, &a->d_expert, e) ? -1 : 0;
}

const struct sh_family sh_family_qwen3_moe = {
    .name = "qwen3_moe",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = sh_llama_prefixes,
    .refusal = "mixtures of experts cannot be run, only their capacity can be computed",
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys,
    .finish = finish,
};
