/* SPDX-License-Identifier: Apache-2.0 */
/* The first GPT (Radford et al., 2018): GPT-2's tensors with norms after the residual sums, and none after the last
 * layer. CTRL (Keskar et al., 2019): norms before the blocks, sines and cosines as positions, ReLU, a head with a
 * bias. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."
#define UNREAD SH_WORDS("intermediate_size", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias")

static const struct sh_key keys[] = {SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "tokens_embed.weight", VOCAB, EMBED, 0),
    SH_MATRIX(POS_EMBED, "positions_embed.weight", POS, MODEL, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_LINEAR(Q, LAYER "attn.c_attn", Q, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(K, LAYER "attn.c_attn", KV, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(V, LAYER "attn.c_attn", KV, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(O, LAYER "attn.c_proj", MODEL, Q, 0, SH_TRANSPOSED), SH_NORM_PAIR(ATTN_NORM, LAYER "ln_1", 0),
    SH_LINEAR(UP, LAYER "mlp.c_fc", FF, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(DOWN, LAYER "mlp.c_proj", MODEL, FF, 0, SH_TRANSPOSED), SH_NORM_PAIR(MLP_NORM, LAYER "ln_2", 0),
    {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->max_pos = a->max_pos ? a->max_pos : 512;
    return sh_four_wide(a, c, e);
}

/* What it calls gelu is the tanh form. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word acts[] = {{"gelu", SH_ACT_GELU_TANH}, {"relu", SH_ACT_RELU}, {"silu", SH_ACT_SILU},
                                          {"swish", SH_ACT_SILU}, {NULL, 0}};
    int act = SH_ACT_GELU_TANH;
    if (sh_config_choice(c, "afn", acts, &act, e))
        return -1;
    a->act = (enum sh_act)act;
    return 0;
}

const struct sh_family sh_family_openai_gpt = {
    .special = "learned positions, norms after the residual sums",
    .name = "openai_gpt", .model_types = SH_WORDS("openai-gpt"),
    .architectures = SH_WORDS("OpenAIGPTLMHeadModel", "OpenAIGPTModel"), .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .norm_place = SH_NORM_POST, .act = SH_ACT_GELU_TANH, .pos = SH_POS_LEARNED,
              .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 512,
              .flags = SH_TIED_HEAD | (SH_GPT_FLAGS & ~(unsigned)SH_HAS_FINAL_NORM)},
    .keys = keys, .params = params, .unread = UNREAD, .shape = shape, .finish = finish};

/* ---- CTRL: only the last norm has the epsilon of the config ---- */

static const struct sh_key keys_ctrl[] = {
    SH_REAL_KEY(final_eps, 1, "layer_norm_epsilon"), SH_COUNT_KEY(d_ff, 1e8, "dff"), {.json = {NULL}}};

static const struct sh_param params_ctrl[] = {
    SH_MATRIX(TOK_EMBED, "w.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "layernorm", 0),
    SH_HEAD_PARAM("lm_head.weight"), SH_VECTOR(HEAD_B, "lm_head.bias", VOCAB, 0, SH_WHOLE_NAME),
    SH_NORM_PAIR(ATTN_NORM, LAYER "layernorm1", 0), SH_LINEAR(Q, LAYER "multi_head_attention.Wq", Q, MODEL, 0, 0),
    SH_LINEAR(K, LAYER "multi_head_attention.Wk", KV, MODEL, 0, 0),
    SH_LINEAR(V, LAYER "multi_head_attention.Wv", KV, MODEL, 0, 0),
    SH_LINEAR(O, LAYER "multi_head_attention.dense", MODEL, Q, 0, 0), SH_NORM_PAIR(MLP_NORM, LAYER "layernorm2", 0),
    SH_LINEAR(UP, LAYER "ffn.0", FF, MODEL, 0, 0), SH_LINEAR(DOWN, LAYER "ffn.2", MODEL, FF, 0, 0), {.name = NULL}};

static int shape_ctrl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    a->d_ff = a->d_ff ? a->d_ff : 8192;
    return 0;
}

static int finish_ctrl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->embed_scale = (float)sqrt((double)a->d_model);
    if (a->d_model % 2)
        return sh_config_refuse(c, "n_embd", "an even number", e);
    if ((long long)a->d_model * a->max_pos > 1000000000)
        return sh_config_refuse(c, "n_positions", "at most 10^9 / n_embd", e);
    return 0;
}

const struct sh_family sh_family_ctrl = {
    .special = "sines as positions, scaled embedding, a head with a bias",
    .name = "ctrl", .model_types = SH_WORDS("ctrl"), .architectures = SH_WORDS("CTRLLMHeadModel", "CTRLModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_RELU, .pos = SH_POS_WAVES, .waves_of_half = 1, .type = SH_F32,
              .norm_eps = 1e-6f, .final_eps = 1e-6f, .init_std = 0.02f, .max_pos = 256,
              .flags = SH_TIED_HEAD | SH_GPT_FLAGS | SH_HAS_HEAD_BIAS},
    .keys = keys_ctrl, .params = params_ctrl, .unread = UNREAD, .shape = shape_ctrl, .finish = finish_ctrl};
