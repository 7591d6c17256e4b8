/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2 (Radford et al., 2019): layer norm, tanh GELU, learned positions, biases, tied head. Its matrices
 * are stored [in, out], those of q, k and v as one. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."

static const struct sh_key keys[] = {
    SH_COUNT_KEY(max_pos, 1e8, "n_positions", "n_ctx"),
    SH_ACT_KEY("activation_function"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0),
    SH_MATRIX(POS_EMBED, "wpe.weight", POS, MODEL, 0),
    SH_NORM_PAIR(FINAL_NORM, "ln_f", 0),
    SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_PAIR(ATTN_NORM, LAYER "ln_1", 0),
    SH_LINEAR(Q, LAYER "attn.c_attn", Q, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(K, LAYER "attn.c_attn", KV, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(V, LAYER "attn.c_attn", KV, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(O, LAYER "attn.c_proj", MODEL, Q, 0, SH_TRANSPOSED),
    SH_NORM_PAIR(MLP_NORM, LAYER "ln_2", 0),
    SH_LINEAR(UP, LAYER "mlp.c_fc", FF, MODEL, 0, SH_TRANSPOSED),
    SH_LINEAR(DOWN, LAYER "mlp.c_proj", MODEL, FF, 0, SH_TRANSPOSED),
    {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int by_width = 1, by_layer = 0;
    if (sh_config_flag(c, "scale_attn_weights", &by_width, e) ||
        sh_config_flag(c, "scale_attn_by_inverse_layer_idx", &by_layer, e))
        return -1;
    if (by_layer)
        a->flags |= SH_SCALED_BY_LAYER;
    if (!by_width)
        a->scale = 1;
    return 0;
}

int sh_four_wide(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    a->d_ff = a->d_ff ? a->d_ff : 4 * a->d_model;
    return 0;
}

static const struct sh_gguf_item items[] = {
    SH_GGUF_COUNT_ITEMS("n_layer", "n_embd", "n_inner", "n_head", "n_positions"),
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    {.name = NULL}};

static const struct sh_gguf_form gguf = {.arch = "gpt2", .items = items};

const struct sh_family sh_family_gpt2 = {
    .special = "learned positions, transposed matrices",
    .name = "gpt2", .model_types = SH_WORDS("gpt2"), .architectures = SH_WORDS("GPT2LMHeadModel", "GPT2Model"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_LEARNED, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .flags = SH_TIED_HEAD | SH_GPT_FLAGS},
    .keys = keys, .params = params, .gguf = &gguf, .shape = sh_four_wide, .finish = finish};
