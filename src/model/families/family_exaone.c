/* SPDX-License-Identifier: Apache-2.0 */
/* EXAONE 3 and 3.5 (LG AI Research, 2024): LLaMA with GPT-2's names. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define H "h.#."
#define PROJECTION(part, stem, out, in, bias) SH_LINEAR(part, H "attn.attention." stem, out, in, bias, 0)

static const struct sh_key keys[] = {
    SH_ACT_KEY("activation_function", "hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon", "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(FINAL_NORM, "ln_f.weight", MODEL, 0), SH_NORM_WEIGHT(ATTN_NORM, H "ln_1.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, H "ln_2.weight", MODEL, 0), PROJECTION(Q, "q_proj", Q, MODEL, SH_HAS_BIAS),
    PROJECTION(K, "k_proj", KV, MODEL, SH_HAS_BIAS), PROJECTION(V, "v_proj", KV, MODEL, SH_HAS_BIAS),
    PROJECTION(O, "out_proj", MODEL, Q, SH_HAS_OUT_BIAS),
    SH_LINEAR(GATE, H "mlp.c_fc_0", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(UP, H "mlp.c_fc_1", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(DOWN, H "mlp.c_proj", MODEL, FF, SH_HAS_MLP_BIAS, 0), {.name = NULL}};

const struct sh_family sh_family_exaone = {
    .special = "LLaMA with the names of GPT-2",
    .name = "exaone", .model_types = SH_WORDS("exaone"),
    .architectures = SH_WORDS("ExaoneForCausalLM", "ExaoneModel", "LlamaForCausalLM", "LlamaModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 4096, .rotary_share = 1, .rope = {.base = 500000}, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_exaone, .finish = sh_config_whole_rope};
