/* SPDX-License-Identifier: Apache-2.0 */
/* GLM-4-9B (Zhipu AI, 2024; glm) and GLM-4-0414 (2025; glm4): neighbouring elements of half of each head rotate
 * together, biases on q, k and v, gate and up in one matrix; GLM-4-0414 also norms the blocks' outputs. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define GATE_UP SH_LAYER "mlp.gate_up_proj.weight"
#define COMMON \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0), \
    SH_LLAMA_ATTENTION, SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "post_attention_layernorm.weight", MODEL, 0), \
    SH_MATRIX(GATE_W, GATE_UP, FF, MODEL, 0), SH_MATRIX(UP_W, GATE_UP, FF, MODEL, 0), \
    SH_MATRIX(DOWN_W, SH_LAYER "mlp.down_proj.weight", MODEL, FF, 0)

static const struct sh_key keys_4v[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "rope_scaling.partial_rotary_factor",
                "partial_rotary_factor"),
    {.json = {NULL}}};
static const struct sh_param params[] = {COMMON, {.name = NULL}};
static const struct sh_param params_4[] = {
    COMMON, SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_self_attn_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_mlp_layernorm.weight", MODEL, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    a->flags &= ~(unsigned)SH_HAS_OUT_BIAS;     /* attention_bias is of q, k and v alone */
    return 0;
}

/* Neighbouring elements rotate together, except in GGUF files whose rows are in another order. */
static int finish_4(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int halves = 0;
    if (sh_config_flag(c, "gguf.halves", &halves, e))
        return -1;
    a->flags &= halves ? ~(unsigned)SH_IN_PAIRS : ~0u;
    return sh_config_classic_rope(a, c, e);
}

static int shape_ocr(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    (void)e;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of it */
    if (sh_config_is_null(c, "num_key_value_heads"))
        a->n_kv_head = a->n_head;
    return 0;
}

#define START \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1.5625e-7f, \
    .init_std = 0.02f, .max_pos = 131072, .rotary_share = 0.5f, .rope = {.base = 10000}, .d_head = 128, \
    .n_kv_head = 2, \
    .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS | SH_IN_PAIRS

const struct sh_family sh_family_glm = {
    .special = "partial rotation of neighbours, gate and up in one tensor",
    .name = "glm", .model_types = SH_WORDS("glm"), .architectures = SH_WORDS("GlmForCausalLM", "GlmModel"),
    .prefixes = sh_llama_prefixes, .start = {START}, .keys = sh_llama_keys, .params = params,
    .gguf = &sh_gguf_glm, .shape = shape, .finish = sh_config_classic_rope};

const struct sh_family sh_family_glm4 = {
    .special = "norms around blocks, partial rotation of neighbours",
    .name = "glm4", .model_types = SH_WORDS("glm4"), .architectures = SH_WORDS("Glm4ForCausalLM", "Glm4Model"),
    .prefixes = sh_llama_prefixes, .start = {START, .norm_place = SH_NORM_BOTH}, .keys = sh_llama_keys,
    .params = params_4,
    .gguf = &sh_gguf_glm4, .shape = shape, .finish = finish_4};

/* The text part of GLM-4.1V and 4.6V, without the vision part. */
const struct sh_family sh_family_glm4v = {
    .special = "text of GLM-4V: GLM-4",
    .name = "glm4v", .model_types = SH_WORDS("glm4v", "glm4v_text"),
    .architectures = SH_WORDS("Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration", "Glm4vTextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 32768, .rotary_share = 1, .rope = {.base = 10000},
              .n_kv_head = 2, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS | SH_IN_PAIRS},
    .keys = keys_4v, .params = params_4, .shape = shape, .finish = sh_config_classic_rope};

/* GLM-OCR: the same without biases. */
const struct sh_family sh_family_glm_ocr = {
    .special = "text of GLM-OCR: GLM-4",
    .name = "glm_ocr", .model_types = SH_WORDS("glm_ocr_text"), .architectures = SH_WORDS("GlmOcrTextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 10000},
              .n_kv_head = 8, .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS},
    .keys = keys_4v, .params = params_4, .shape = shape_ocr, .finish = sh_config_classic_rope};
