/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2 (Radford et al., 2019): layer norm, tanh GELU, learned positions, biases, tied head. Its matrices
 * are stored [in, out], those of q, k and v as one. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."
#define QKV_W LAYER "attn.c_attn.weight"
#define QKV_B LAYER "attn.c_attn.bias"

static const struct sh_key keys[] = {
    SH_COUNT_KEY(max_pos, 1e8, "n_positions", "n_ctx"),
    SH_ACT_KEY("activation_function"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    {SH_TOK_EMBED, "wte.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_POS_EMBED, "wpe.weight", SH_DIM_POS, SH_DIM_MODEL, 0, 0, 0},
    {SH_FINAL_NORM_W, "ln_f.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_FINAL_NORM_B, "ln_f.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "ln_1.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_ATTN_NORM_B, LAYER "ln_1.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_W, QKV_W, SH_DIM_Q, SH_DIM_MODEL, 0, 0, SH_TRANSPOSED},
    {SH_Q_B, QKV_B, SH_ONE, SH_DIM_Q, 0, 0, 0},
    {SH_K_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_TRANSPOSED},
    {SH_K_B, QKV_B, SH_ONE, SH_DIM_KV, 0, 0, 0},
    {SH_V_W, QKV_W, SH_DIM_KV, SH_DIM_MODEL, 0, 0, SH_TRANSPOSED},
    {SH_V_B, QKV_B, SH_ONE, SH_DIM_KV, 0, 0, 0},
    {SH_O_W, LAYER "attn.c_proj.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, SH_TRANSPOSED},
    {SH_O_B, LAYER "attn.c_proj.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_W, LAYER "ln_2.weight", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_MLP_NORM_B, LAYER "ln_2.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_W, LAYER "mlp.c_fc.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, SH_TRANSPOSED},
    {SH_UP_B, LAYER "mlp.c_fc.bias", SH_ONE, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_W, LAYER "mlp.c_proj.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, SH_TRANSPOSED},
    {SH_DOWN_B, LAYER "mlp.c_proj.bias", SH_ONE, SH_DIM_MODEL, 0, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

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

const struct sh_family sh_family_gpt2 = {
    .name = "gpt2",
    .model_types = SH_WORDS("gpt2"),
    .architectures = SH_WORDS("GPT2LMHeadModel", "GPT2Model"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_LEARNED, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f,
              .flags = SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE |
                       SH_HAS_FINAL_NORM},
    .keys = keys,
    .params = params,
    .shape = sh_four_wide,
    .finish = finish,
};
