/* SPDX-License-Identifier: Apache-2.0 */
/* The model families: X(name) stands for sh_family_<name>, in family_<name>.c or next to the family whose tables it
 * shares. */
#ifndef SH_MODEL_FAMILIES_H
#define SH_MODEL_FAMILIES_H

#include "src/model/families/family.h"

#define SH_FAMILIES(X) \
    X(opt) X(llama) X(mistral) X(qwen2) X(qwen3) X(phi3) X(gemma2) X(gemma3) X(gpt2) X(gpt_neo) X(gpt_neox) X(bloom) \
    X(gptj) X(mixtral) X(mimo) X(qwen2_moe) X(qwen3_moe) X(qwen3_next) X(qwen3_5) X(qwen3_5_moe) X(minimax_m2) \
    X(gemma) X(gemma4) X(falcon) X(mpt) X(deepseek) X(deepseek_v32) X(glm_moe_dsa) X(gpt_oss) X(nemotron_h) X(jamba) \
    X(llama4)

#define SH_FAMILY_DECLARE(name) extern const struct sh_family sh_family_##name;
SH_FAMILIES(SH_FAMILY_DECLARE)
#undef SH_FAMILY_DECLARE

/* All of them; NULL ends. */
extern const struct sh_family *const sh_families[];

/* LLaMA's tables, which its descendants share (family_llama.c). */
extern const struct sh_key sh_llama_keys[];
extern const struct sh_param sh_llama_params[];
extern const char *const sh_llama_prefixes[];
extern const struct sh_gguf_item sh_llama_items[];
extern const struct sh_gguf_form sh_llama_gguf;
#define SH_LLAMA_START \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f, \
    .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000}
#define SH_LLAMA_FLAGS (SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_GATED)

/* The tables that GPT-2 and its relatives share. */
#define SH_GPT_FLAGS \
    (SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM)

/* A feed-forward block of four times the width by default (family_gpt2.c); a window in every layer if sliding_window is
 * set (family_llama.c). */
sh_shape sh_four_wide, sh_window_shape;

#endif
