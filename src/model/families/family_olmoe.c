/* SPDX-License-Identifier: Apache-2.0 */
/* OLMoE (Muennighoff et al., 2024): OLMo with one norm over all queries of a token and one over its keys, and only
 * experts. FlexOlmo (Shi et al., 2025): OLMo 2 with the same experts. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(clip, 1e6, "clip_qkv"), SH_COUNT_KEY(mix.n, 1e5, "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"), {.json = {NULL}}};

#define COMMON \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_ROUTER("mlp.gate.weight"), \
    SH_LLAMA_EXPERTS
static const struct sh_param params[] = {COMMON, SH_LLAMA_IN_NORMS, {.name = NULL}};
static const struct sh_param params_flex[] = {COMMON, SH_LLAMA_OUT_NORMS, {.name = NULL}};

#define FLAGS SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_WIDE

const struct sh_family sh_family_olmoe = {
    .special = "experts, a norm of all queries together",
    .name = "olmoe", .model_types = SH_WORDS("olmoe"), .architectures = SH_WORDS("OlmoeForCausalLM", "OlmoeModel"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START_EPS(1e-5f), .mix = {.n = 64, .used = 8}, .flags = FLAGS},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_olmoe, .shape = sh_mixture_shape, .finish = sh_config_whole_rope};

const struct sh_family sh_family_flex_olmo = {
    .special = "experts, norms on the outputs of blocks",
    .name = "flex_olmo", .model_types = SH_WORDS("flex_olmo"),
    .architectures = SH_WORDS("FlexOlmoForCausalLM", "FlexOlmoModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_OUT, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 4096, .rotary_share = 1, .rope = {.base = 500000},
              .mix = {.n = 7, .used = 5}, .flags = FLAGS},
    .keys = keys, .params = params_flex, .shape = sh_mixture_shape, .finish = sh_config_whole_rope};
