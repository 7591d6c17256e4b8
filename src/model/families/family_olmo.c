/* SPDX-License-Identifier: Apache-2.0 */
/* OLMo (Groeneveld et al., 2024): LLaMA with layer norms that have no weights, and clipped queries, keys and values.
 * OLMo 2 (2025) norms the blocks' outputs instead of their inputs, and also queries and keys, each over all heads
 * together. OLMo 3 adds a window in three of four layers, whose rotation is not scaled. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), SH_REAL_KEY(clip, 1e6, "clip_qkv"),
    {.json = {NULL}}};

static const struct sh_param params[] = {SH_LLAMA_ENDS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED, {.name = NULL}};

const struct sh_family sh_family_olmo = {
    .special = "norms without weights, clipped queries, keys and values",
    .name = "olmo", .model_types = SH_WORDS("olmo"), .architectures = SH_WORDS("OlmoForCausalLM", "OlmoModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000},
              .flags = SH_HAS_FINAL_NORM | SH_GATED},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_olmo, .finish = sh_config_classic_rope};

/* ---- OLMo 2 and 3 ---- */

static const struct sh_param params_2[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_OUT_NORMS, SH_LLAMA_FEED,
    {.name = NULL}};

#define START(base_of_rotation) { \
    .norm = SH_NORM_RMS, .norm_place = SH_NORM_OUT, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, \
    .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = base_of_rotation}, \
    .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_WIDE}

const struct sh_family sh_family_olmo2 = {
    .special = "norms on the outputs of blocks, a norm of all queries together",
    .name = "olmo2", .model_types = SH_WORDS("olmo2"), .architectures = SH_WORDS("Olmo2ForCausalLM", "Olmo2Model"),
    .prefixes = sh_llama_prefixes, .start = START(10000), .keys = sh_llama_keys, .params = params_2,
    .gguf = &sh_gguf_olmo2,
    .finish = sh_config_whole_rope};

static int shape_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 4096, a, e) || sh_config_windows(c, sh_but_each, 4, a, e) ? -1 : 0;
}

static int finish_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    static const char *const whole[] = {"rope_scaling", "rope_parameters.full_attention", "rope_parameters", NULL};
    float base = a->rope.base;
    if (sh_config_turns_whole(a, c, e) ||
        sh_config_real(c, "rope_parameters.full_attention.rope_theta", 1e12, &a->rope.base, e) ||
        sh_config_rope(c, whole, a, &a->rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    a->local_rope.base = sh_config_is_filled(c, "rope_parameters.full_attention") ? base : a->rope.base;
    return sh_config_rope(c, local, a, &a->local_rope, e);
}

const struct sh_family sh_family_olmo3 = {
    .special = "norms on the outputs of blocks, windows in three of four layers",
    .name = "olmo3", .model_types = SH_WORDS("olmo3"), .architectures = SH_WORDS("Olmo3ForCausalLM", "Olmo3Model"),
    .prefixes = sh_llama_prefixes, .start = START(500000), .keys = sh_llama_keys, .params = params_2,
    .gguf = &sh_gguf_olmo2,
    .knows = " sliding_window layer_types ", .shape = shape_3, .finish = finish_3};
