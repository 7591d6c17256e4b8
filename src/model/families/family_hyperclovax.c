/* SPDX-License-Identifier: Apache-2.0 */
/* HyperCLOVA X SEED Think (NAVER, 2025): Granite with norms on the blocks' outputs, and a factor of logits. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_GRANITE_FACTORS, {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_norm1.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_norm2.weight", MODEL, 0), {.name = NULL}};

const struct sh_family sh_family_hyperclovax = {
    .special = "norms on outputs, multipliers of embedding, scores, residuals and logits",
    .name = "hyperclovax", .model_types = SH_WORDS("hyperclovax"),
    .architectures = SH_WORDS("HyperCLOVAXForCausalLM", "HyperCLOVAXModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .norm_place = SH_NORM_BOTH, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .only = SH_WORDS("use_post_norm=true"), .finish = sh_config_classic_rope};
