/* SPDX-License-Identifier: Apache-2.0 */
/* ERNIE 4.5 (Baidu, 2025): LLaMA with neighbouring elements that rotate together. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "use_bias"), {.json = {NULL}}};

const struct sh_family sh_family_ernie4_5 = {
    .name = "ernie4_5", .model_types = SH_WORDS("ernie4_5"),
    .architectures = SH_WORDS("Ernie4_5ForCausalLM", "Ernie4_5Model"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 500000}, .d_head = 128,
              .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS | SH_TIED_HEAD},
    .keys = keys, .params = sh_llama_params, .finish = sh_config_classic_rope};
