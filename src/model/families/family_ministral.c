/* SPDX-License-Identifier: Apache-2.0 */
/* Ministral (Mistral AI, 2024): Mistral with windows in some layers. Ministral 3 (2025): no windows, YaRN, and queries
 * that grow with the logarithm of their position; it is published as the text part of models with vision. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of Mistral */
    if (sh_config_window(c, 0, a, e))
        return -1;
    return a->window && sh_config_has(c, "layer_types.0") ? sh_config_layer_types(c, "layer_types", a, e) : 0;
}

const struct sh_family sh_family_ministral = {
    .special = "windows in three of four layers",
    .name = "ministral", .model_types = SH_WORDS("ministral"),
    .architectures = SH_WORDS("MinistralForCausalLM", "MinistralModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS}, .keys = sh_llama_keys, .params = sh_llama_params,
    .knows = " sliding_window layer_types ", .shape = shape, .finish = sh_config_whole_rope};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (!sh_config_is_gguf(c) && !sh_config_says_rope(c))
        return sh_config_refuse(c, "rope_parameters", "the parameters of the rotation", e);
    if (sh_config_whole_rope(a, c, e) ||
        sh_config_real(c, "rope_scaling.llama_4_scaling_beta", 1e6, &a->temper, e) ||
        sh_config_real(c, "rope_parameters.llama_4_scaling_beta", 1e6, &a->temper, e))
        return -1;
    a->temper_length = (float)a->rope.original;
    return 0;
}

const struct sh_family sh_family_ministral3 = {
    .special = "temperature by position, YaRN",
    .name = "ministral3", .model_types = SH_WORDS("ministral3"),
    .architectures = SH_WORDS("Ministral3ForCausalLM", "Ministral3Model", "Mistral3ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {SH_LLAMA_START_EPS(1e-5f), .d_head = 128, .flags = SH_LLAMA_FLAGS}, .keys = sh_llama_keys,
    .params = sh_llama_params,
    .gguf = &sh_gguf_ministral3, .knows = " sliding_window layer_types ", .shape = shape, .finish = finish};
