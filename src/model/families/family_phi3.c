/* SPDX-License-Identifier: Apache-2.0 */
/* Phi-3 (Abdin et al., 2024): LLaMA with q, k and v in one matrix, gate and up in another, and a window in every layer
 * unless sliding_window is null. Long-context releases and Phi-4-mini scale each frequency by itself ("longrope").
 * Phi-4-multimodal is Phi-4-mini with adapters, which no text without pictures or sound passes. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."
#define QKV LAYER "self_attn.qkv_proj"
#define GATE_UP LAYER "mlp.gate_up_proj"

#define ENDS \
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0), SH_NORM_WEIGHT(FINAL_NORM, "norm.weight", MODEL, 0), \
    SH_HEAD_PARAM("lm_head.weight"), SH_NORM_WEIGHT(ATTN_NORM, LAYER "input_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_NORM, LAYER "post_attention_layernorm.weight", MODEL, 0)
#define BLOCKS(end) \
    SH_MATRIX(Q_W, QKV end, Q, MODEL, 0), SH_MATRIX(K_W, QKV end, KV, MODEL, 0), \
    SH_MATRIX(V_W, QKV end, KV, MODEL, 0), SH_MATRIX(O_W, LAYER "self_attn.o_proj" end, MODEL, Q, 0), \
    SH_MATRIX(GATE_W, GATE_UP end, FF, MODEL, 0), SH_MATRIX(UP_W, GATE_UP end, FF, MODEL, 0), \
    SH_MATRIX(DOWN_W, LAYER "mlp.down_proj" end, MODEL, FF, 0)
static const struct sh_param params[] = {ENDS, BLOCKS(".weight"), {.name = NULL}};
static const struct sh_param adapted[] = {ENDS, BLOCKS(".weight"), BLOCKS(".base_layer.weight"), {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (!sh_config_has(c, "rms_norm_eps"))
        a->norm_eps = 1e-5f;
    if (!sh_config_is_gguf(c))
        a->rope.original = 4096;        /* Phi3Config has it always */
    return sh_config_classic_rope(a, c, e);
}

static const struct sh_gguf_form gguf = {
    .arch = "phi3", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD | SH_GGUF_WINDOW | SH_GGUF_LONG};

const struct sh_family sh_family_phi3 = {
    .special = "q, k, v and gate, up in one tensor; longrope",
    .name = "phi3", .model_types = SH_WORDS("phi3"), .architectures = SH_WORDS("Phi3ForCausalLM", "Phi3Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = params, .gguf = &gguf, .knows = " sliding_window ", .shape = sh_window_shape,
    .finish = finish};

const struct sh_family sh_family_phi4_multimodal = {
    .special = "text of Phi-4-multimodal: Phi-3",
    .name = "phi4_multimodal", .model_types = SH_WORDS("phi4_multimodal", "phi4mm"),
    .architectures = SH_WORDS("Phi4MultimodalForCausalLM", "Phi4MMForCausalLM", "Phi4MultimodalModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 10000}, .n_kv_head = 8,
              .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = adapted, .only = SH_WORDS("lm_head_bias=false"), .knows = " sliding_window ",
    .shape = sh_window_shape, .finish = finish};
