/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 3 (Yang et al., 2025): Qwen 2 without the biases, with a norm on every query and key. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const char *const model_types[] = {"qwen3", NULL};
static const char *const architectures[] = {"Qwen3ForCausalLM", "Qwen3Model", NULL};

const struct sh_family sh_family_qwen3 = {
    .name = "qwen3",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys,
    .params = sh_llama_params,
    .finish = sh_qwen_finish,
};
