/* SPDX-License-Identifier: Apache-2.0 */
/* OPT (Zhang et al., 2022): layer norm, ReLU, learned positions stored from row 2 on, biases, tied
 * head. opt-350m differs: norms after the residual sums, no final norm, and a token embedding that
 * is narrower than the model, with projections in and out. The norms' epsilon is not in the
 * config. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."

static const struct sh_key keys[] = {
    SH_COUNT_KEY(d_embed, 1e7, "word_embed_proj_dim"),
    SH_ACT_KEY("activation_function"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "enable_bias"),
    SH_FLAG_KEY(SH_HAS_NORM_AFFINE, "layer_norm_elementwise_affine"),
    {.json = {NULL}}};

#define AFFINE SH_HAS_NORM_AFFINE
#define FINAL (SH_HAS_FINAL_NORM | SH_HAS_NORM_AFFINE)
#define BIAS SH_HAS_BIAS

static const struct sh_param params[] = {
    {SH_TOK_EMBED, "embed_tokens.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, 0, 0},
    {SH_POS_EMBED, "embed_positions.weight", SH_DIM_POS, SH_DIM_MODEL, 0, 0, 0},
    {SH_PROJ_IN, "project_in.weight", SH_DIM_MODEL, SH_DIM_EMBED, SH_HAS_PROJECTION, 0, 0},
    {SH_PROJ_OUT, "project_out.weight", SH_DIM_EMBED, SH_DIM_MODEL, SH_HAS_PROJECTION, 0, 0},
    {SH_FINAL_NORM_W, "final_layer_norm.weight", SH_ONE, SH_DIM_MODEL, FINAL, 0, 0},
    {SH_FINAL_NORM_B, "final_layer_norm.bias", SH_ONE, SH_DIM_MODEL, FINAL, 0, 0},
    {SH_HEAD, "lm_head.weight", SH_DIM_VOCAB, SH_DIM_EMBED, 0, SH_TIED_HEAD, SH_WHOLE_NAME},
    {SH_ATTN_NORM_W, LAYER "self_attn_layer_norm.weight", SH_ONE, SH_DIM_MODEL, AFFINE, 0, 0},
    {SH_ATTN_NORM_B, LAYER "self_attn_layer_norm.bias", SH_ONE, SH_DIM_MODEL, AFFINE, 0, 0},
    {SH_Q_W, LAYER "self_attn.q_proj.weight", SH_DIM_Q, SH_DIM_MODEL, 0, 0, 0},
    {SH_Q_B, LAYER "self_attn.q_proj.bias", SH_ONE, SH_DIM_Q, BIAS, 0, 0},
    {SH_K_W, LAYER "self_attn.k_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_K_B, LAYER "self_attn.k_proj.bias", SH_ONE, SH_DIM_KV, BIAS, 0, 0},
    {SH_V_W, LAYER "self_attn.v_proj.weight", SH_DIM_KV, SH_DIM_MODEL, 0, 0, 0},
    {SH_V_B, LAYER "self_attn.v_proj.bias", SH_ONE, SH_DIM_KV, BIAS, 0, 0},
    {SH_O_W, LAYER "self_attn.out_proj.weight", SH_DIM_MODEL, SH_DIM_Q, 0, 0, 0},
    {SH_O_B, LAYER "self_attn.out_proj.bias", SH_ONE, SH_DIM_MODEL, BIAS, 0, 0},
    {SH_MLP_NORM_W, LAYER "final_layer_norm.weight", SH_ONE, SH_DIM_MODEL, AFFINE, 0, 0},
    {SH_MLP_NORM_B, LAYER "final_layer_norm.bias", SH_ONE, SH_DIM_MODEL, AFFINE, 0, 0},
    {SH_UP_W, LAYER "fc1.weight", SH_DIM_FF, SH_DIM_MODEL, 0, 0, 0},
    {SH_UP_B, LAYER "fc1.bias", SH_ONE, SH_DIM_FF, BIAS, 0, 0},
    {SH_DOWN_W, LAYER "fc2.weight", SH_DIM_MODEL, SH_DIM_FF, 0, 0, 0},
    {SH_DOWN_B, LAYER "fc2.bias", SH_ONE, SH_DIM_MODEL, BIAS, 0, 0},
    {SH_N_ROLE, NULL, SH_ONE, SH_ONE, 0, 0, 0}};

/* With norms after the residual sums there is no final norm; some early checkpoints with norms in
 * front go without it too, and say so. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int norm_before = 1, removed = 0;
    if (sh_config_flag(c, "do_layer_norm_before", &norm_before, e) ||
        sh_config_flag(c, "_remove_final_layer_norm", &removed, e))
        return -1;
    a->norm_place = norm_before ? SH_NORM_PRE : SH_NORM_POST;
    if (norm_before && !removed)
        a->flags |= SH_HAS_FINAL_NORM;
    if (a->d_embed && a->d_embed != a->d_model)
        a->flags |= SH_HAS_PROJECTION;
    return 0;
}

const struct sh_family sh_family_opt = {
    .name = "opt",
    .model_types = SH_WORDS("opt"),
    .architectures = SH_WORDS("OPTForCausalLM", "OPTModel"),
    .prefixes = SH_WORDS("model.decoder.", "decoder."),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_RELU, .pos = SH_POS_LEARNED, .pos_offset = 2,
              .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f,
              .flags = SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE},
    .keys = keys,
    .params = params,
    .knows = " word_embed_proj_dim ",
    .shape = shape,
};
