/* SPDX-License-Identifier: Apache-2.0 */
/* Phi-3 (Abdin et al., 2024): LLaMA with q, k and v in one matrix, gate and up in another, and a window in
 * every layer unless sliding_window is null. The long-context releases and Phi-4-mini scale their frequencies
 * element by element ("longrope"). */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."
#define QKV LAYER "self_attn.qkv_proj.weight"
#define GATE_UP LAYER "mlp.gate_up_proj.weight"

static const struct sh_param params[] = {
    {SH_TOK_EMBED, "embed_tokens.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_FINAL_NORM_W, "norm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "input_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, QKV, SH_DIM_Q, SH_DIM_MODEL, 0, 0, 0},
    {SH_K_W, QKV, SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_V_W, QKV, SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_O_W, LAYER "self_attn.o_proj.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_MLP_NORM_W, LAYER "post_attention_layernorm.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_GATE_W, GATE_UP, SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_W, GATE_UP, SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_DOWN_W, LAYER "mlp.down_proj.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (!sh_config_has(c, "rms_norm_eps"))
        a->norm_eps = 1e-5f;
    if (!sh_config_is_gguf(c))
        a->rope.original = 4096;        /* Phi3Config has it always */
    return sh_config_classic_rope(a, c, e);
}

const struct sh_family sh_family_phi3 = {
    .name = "phi3",
    .model_types = SH_WORDS("phi3"),
    .architectures = SH_WORDS("Phi3ForCausalLM", "Phi3Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys,
    .params = params,
    .knows = " sliding_window ",
    .shape = sh_window_shape,
    .finish = finish,
};
