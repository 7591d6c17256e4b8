/* SPDX-License-Identifier: Apache-2.0 */
/* SmolLM 3 (Hugging Face, 2025): LLaMA without rotation in every fourth layer. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int uses = 0, typed = sh_config_has(c, "layer_types.0");
    if (sh_config_flag(c, "use_sliding_window", &uses, e) || (uses && sh_config_window(c, 0, a, e)) ||
        (a->window && typed && sh_config_layer_types(c, "layer_types", a, e)) ||
        sh_config_still_layers(c, a, e))
        return -1;
    for (int layer = 0; layer < a->n_layer && a->window && !typed; layer++)
        if (sh_arch_turns(a, layer))    /* only the others have the window                        */
            sh_arch_see_all(a, layer);
    return 0;
}

const struct sh_family sh_family_smollm3 = {
    .special = "no positions in every fourth layer",
    .name = "smollm3", .model_types = SH_WORDS("smollm3"),
    .architectures = SH_WORDS("SmolLM3ForCausalLM", "SmolLM3Model"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 32768, .rotary_share = 1, .rope = {.base = 2e6f},
              .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = sh_llama_keys, .params = sh_llama_params,
    .gguf = &sh_gguf_smollm3,
    .knows = " no_rope_layers sliding_window use_sliding_window max_window_layers layer_types ", .shape = shape,
    .finish = sh_config_whole_rope};
