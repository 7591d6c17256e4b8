/* SPDX-License-Identifier: Apache-2.0 */
/* Mistral (Jiang et al., 2023): LLaMA with a window in every layer, which later releases gave up again
 * (sliding_window null). */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const char *const model_types[] = {"mistral", NULL};
static const char *const architectures[] = {"MistralForCausalLM", "MistralModel", NULL};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of Mistral */
    return sh_config_whole_rope(a, c, e) || sh_config_window(c, 4096, a, e) ? -1 : 0;
}

const struct sh_family sh_family_mistral = {
    .name = "mistral",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys,
    .params = sh_llama_params,
    .finish = finish,
};
