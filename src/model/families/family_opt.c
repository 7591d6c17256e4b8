/* SPDX-License-Identifier: Apache-2.0 */
/* OPT (Zhang et al., 2022): layer norm, ReLU, learned positions stored from row 2 on, biases, tied head. opt-350m
 * differs: norms after the residual sums, no final norm, and a token embedding that is narrower than the model, with
 * projections in and out. The norms' epsilon is not in the config. */
#include "src/model/config/config.h"
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
#define PROJECTION(part, tensor, out, in) \
    {.role = SH_##part, .name = tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, .needs = SH_HAS_PROJECTION}

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0),
    SH_MATRIX(POS_EMBED, "embed_positions.weight", POS, MODEL, 0),
    PROJECTION(PROJ_IN, "project_in.weight", MODEL, EMBED),
    PROJECTION(PROJ_OUT, "project_out.weight", EMBED, MODEL),
    SH_NORM_PAIR(FINAL_NORM, "final_layer_norm", FINAL),
    SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_PAIR(ATTN_NORM, LAYER "self_attn_layer_norm", AFFINE),
    SH_LINEAR(Q, LAYER "self_attn.q_proj", Q, MODEL, BIAS, 0),
    SH_LINEAR(K, LAYER "self_attn.k_proj", KV, MODEL, BIAS, 0),
    SH_LINEAR(V, LAYER "self_attn.v_proj", KV, MODEL, BIAS, 0),
    SH_LINEAR(O, LAYER "self_attn.out_proj", MODEL, Q, BIAS, 0),
    SH_NORM_PAIR(MLP_NORM, LAYER "final_layer_norm", AFFINE),
    SH_LINEAR(UP, LAYER "fc1", FF, MODEL, BIAS, 0),
    SH_LINEAR(DOWN, LAYER "fc2", MODEL, FF, BIAS, 0),
    {.name = NULL}};

/* With norms after the residual sums there is no final norm; some early checkpoints with norms first lack it too. */
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
    .special = "learned positions with an offset of 2, ReLU",
    .name = "opt", .model_types = SH_WORDS("opt"), .architectures = SH_WORDS("OPTForCausalLM", "OPTModel"),
    .prefixes = SH_WORDS("model.decoder.", "decoder."),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_RELU, .pos = SH_POS_LEARNED, .pos_offset = 2, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f,
              .flags = SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE},
    .keys = keys, .params = params, .shape = shape};
