/* SPDX-License-Identifier: Apache-2.0 */
/* StarCoder (Li et al., 2023; gpt_bigcode): GPT-2 with one KV head. StarCoder 2 (Lozhkov et al., 2024): LLaMA with
 * layer norms, biases everywhere, a plain feed-forward block and a window in every layer. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define H "h.#."

static const struct sh_key keys[] = {
    SH_COUNT_KEY(max_pos, 1e8, "n_positions", "n_ctx"), SH_ACT_KEY("activation_function"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_MATRIX(POS_EMBED, "wpe.weight", POS, MODEL, 0),
    SH_NORM_PAIR(FINAL_NORM, "ln_f", 0), SH_HEAD_PARAM("lm_head.weight"), SH_NORM_PAIR(ATTN_NORM, H "ln_1", 0),
    SH_LINEAR(Q, H "attn.c_attn", Q, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(K, H "attn.c_attn", KV, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(V, H "attn.c_attn", KV, MODEL, 0, SH_INTERLEAVED),
    SH_LINEAR(O, H "attn.c_proj", MODEL, Q, 0, 0), SH_NORM_PAIR(MLP_NORM, H "ln_2", 0),
    SH_LINEAR(UP, H "mlp.c_fc", FF, MODEL, 0, 0), SH_LINEAR(DOWN, H "mlp.c_proj", MODEL, FF, 0, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int one = 1;
    if (sh_config_flag(c, "multi_query", &one, e))
        return -1;
    a->n_kv_head = one ? 1 : a->n_head;
    return sh_four_wide(a, c, e);
}

const struct sh_family sh_family_gpt_bigcode = {
    .special = "one KV head, learned positions",
    .name = "gpt_bigcode", .model_types = SH_WORDS("gpt_bigcode"),
    .architectures = SH_WORDS("GPTBigCodeForCausalLM", "GPTBigCodeModel"), .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_LEARNED, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .flags = SH_TIED_HEAD | SH_GPT_FLAGS},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_gpt_bigcode, .only = SH_WORDS("scale_attn_weights=true", "add_cross_attention=false"),
    .knows = " multi_query ", .shape = shape};

/* ---- StarCoder 2 ---- */

static const struct sh_key keys_2[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "norm_epsilon"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "use_bias"), {.json = {NULL}}};

static const struct sh_param params_2[] = {
    SH_LLAMA_ENDS, SH_NORM_PAIR(FINAL_NORM, "norm", 0), SH_NORM_PAIR(ATTN_NORM, SH_LAYER "input_layernorm", 0),
    SH_LLAMA_ATTENTION, SH_NORM_PAIR(MLP_NORM, SH_LAYER "post_attention_layernorm", 0),
    SH_LINEAR(UP, SH_LAYER "mlp.c_fc", FF, MODEL, SH_HAS_MLP_BIAS, 0),
    SH_LINEAR(DOWN, SH_LAYER "mlp.c_proj", MODEL, FF, SH_HAS_MLP_BIAS, 0), {.name = NULL}};

const struct sh_family sh_family_starcoder2 = {
    .special = "layer norms and biases, a window in every layer",
    .name = "starcoder2", .model_types = SH_WORDS("starcoder2"),
    .architectures = SH_WORDS("Starcoder2ForCausalLM", "Starcoder2Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_GELU_TANH, .max_pos = 4096, .rotary_share = 1,
              .flags = SH_GPT_FLAGS | SH_TIED_HEAD},
    .keys = keys_2, .params = params_2,
    .gguf = &sh_gguf_starcoder2, .knows = " sliding_window ", .shape = sh_window_shape,
    .finish = sh_config_classic_rope};
