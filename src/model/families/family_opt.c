/* SPDX-License-Identifier: Apache-2.0 */
/* OPT (Zhang et al., 2022): layer norm, ReLU, learned positions stored from row 2 on, biases, tied
 * head. opt-350m differs: norms after the residual sums, no final norm, and a token embedding that
 * is narrower than the model, with projections in and out. The norms' epsilon is not in the
 * config. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define LAYER "layers.#."
#define FIELD(name) offsetof(struct sh_arch, name)

static const char *const model_types[] = {"opt", NULL};
static const char *const architectures[] = {"OPTForCausalLM", "OPTModel", NULL};
static const char *const prefixes[] = {"model.decoder.", "decoder.", NULL};

static const struct sh_key keys[] = {
    {{"num_hidden_layers"}, SH_KEY_COUNT, FIELD(n_layer), 0, 1, 1e4},
    {{"num_attention_heads"}, SH_KEY_COUNT, FIELD(n_head), 0, 1, 1e5},
    {{"hidden_size"}, SH_KEY_COUNT, FIELD(d_model), 0, 1, 1e7},
    {{"word_embed_proj_dim"}, SH_KEY_COUNT, FIELD(d_embed), 0, 0, 1e7},
    {{"ffn_dim"}, SH_KEY_COUNT, FIELD(d_ff), 0, 1, 1e8},
    {{"vocab_size"}, SH_KEY_COUNT, FIELD(n_vocab), 0, 1, 1e8},
    {{"max_position_embeddings"}, SH_KEY_COUNT, FIELD(max_pos), 0, 1, 1e8},
    {{"activation_function"}, SH_KEY_ACT, FIELD(act), 0, 0, 0},
    {{"init_std"}, SH_KEY_REAL, FIELD(init_std), 0, 0, 100},
    {{"enable_bias"}, SH_KEY_FLAG, 0, SH_HAS_BIAS, 0, 0},
    {{"layer_norm_elementwise_affine"}, SH_KEY_FLAG, 0, SH_HAS_NORM_AFFINE, 0, 0},
    {{"tie_word_embeddings"}, SH_KEY_FLAG, 0, SH_TIED_HEAD, 0, 0},
    {{"dtype", "torch_dtype"}, SH_KEY_TYPE, FIELD(type), 0, 0, 0},
    {{NULL}, SH_KEY_COUNT, 0, 0, 0, 0}};

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
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int norm_before = 1, removed = 0;
    if (sh_config_flag(c, "do_layer_norm_before", &norm_before, e) ||
        sh_config_flag(c, "_remove_final_layer_norm", &removed, e))
        return -1;
    a->norm_place = norm_before ? SH_NORM_PRE : SH_NORM_POST;
    if (norm_before && !removed)
        a->flags |= SH_HAS_FINAL_NORM;
    if (a->d_embed != a->d_model)
        a->flags |= SH_HAS_PROJECTION;
    return 0;
}

const struct sh_family sh_family_opt = {
    .name = "opt",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = prefixes,
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_RELU, .pos = SH_POS_LEARNED, .pos_offset = 2,
              .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f,
              .flags = SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_NORM_AFFINE},
    .keys = keys,
    .params = params,
    .finish = finish,
};
