/* SPDX-License-Identifier: Apache-2.0 */
/* Apertus (Swiss AI, 2025): LLaMA with norms on queries and keys, and xIELU without gate. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define ACT SH_LAYER "mlp.act_fn."

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "attention_layernorm.weight", MODEL, 0),
    SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "feedforward_layernorm.weight", MODEL, 0), SH_LLAMA_PLAIN_FEED,
    {.role = SH_ACT_AP, .name = ACT "alpha_p"}, {.role = SH_ACT_AN, .name = ACT "alpha_n"},
    {.role = SH_ACT_BETA, .name = ACT "beta"}, {.role = SH_ACT_EPS, .name = ACT "eps"}, {.name = NULL}};

/* A file that says nothing about the rotation means LLaMA 3's scaling. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (!sh_config_says_rope(c) && !sh_config_is_gguf(c))
        a->rope = (struct sh_rope){.kind = SH_ROPE_LLAMA3, .base = a->rope.base, .factor = 8, .low = 1, .high = 4,
                                   .original = 8192};
    return 0;
}

const struct sh_family sh_family_apertus = {
    .special = "xIELU, a norm of each query and key",
    .name = "apertus", .model_types = SH_WORDS("apertus"),
    .architectures = SH_WORDS("ApertusForCausalLM", "ApertusModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_XIELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 65536, .rotary_share = 1, .rope = {.base = 12e6f},
              .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_HAS_QK_NORM},
    .keys = sh_llama_keys, .params = params, .gguf = &sh_gguf_apertus,
    .only = SH_WORDS("hidden_act=\"xielu\"", "qk_norm=true", "post_norm=false"), .finish = finish};
