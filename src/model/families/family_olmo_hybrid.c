/* SPDX-License-Identifier: Apache-2.0 */
/* OLMo Hybrid (Ai2, 2026): for every three layers of the gated delta rule (recurrent.c), whose updates may be twice as
 * strong, one of OLMo 3's layers with attention. The former have norms before their blocks, the latter on their blocks'
 * outputs. The released models do not rotate. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_COUNT_KEY(recurrent.n_k, 1e5, "linear_num_key_heads"),
    SH_COUNT_KEY(recurrent.n_v, 1e5, "linear_num_value_heads"),
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, "linear_key_head_dim"),
    SH_COUNT_KEY(recurrent.d_v, 1e5, "linear_value_head_dim"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "linear_conv_kernel_dim"), {.json = {NULL}}};

/* transformers cuts the convolution into three equal parts, and names norms before and after blocks alike. */
#define A SH_LAYER "linear_attn."
#define IN(part, tensor, out) SH_MATRIX(RECUR_##part##_W, A tensor ".weight", out, MODEL, 0)
#define CONV(part, tensor, out) SH_MATRIX(part, A tensor "_conv1d.weight", out, RECUR_KERNEL, SH_CUT_ANYWHERE)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_OUT_NORMS, SH_LLAMA_FEED,
    SH_LLAMA_IN_NORMS, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "attention_layer_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "feedforward_layer_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "feedforward_layer_norm.weight", MODEL, 0),
    IN(Q, "q_proj", RECUR_KEYS), IN(K, "k_proj", RECUR_KEYS), IN(V, "v_proj", RECUR_VALUES),
    IN(Z, "g_proj", RECUR_VALUES), IN(B, "b_proj", RECUR_HEADS), IN(A, "a_proj", RECUR_HEADS),
    CONV(RECUR_CONV, "q", RECUR_KEYS), CONV(RECUR_CONV_K, "k", RECUR_KEYS), CONV(RECUR_CONV_V, "v", RECUR_VALUES),
    SH_VECTOR(RECUR_LOG_A, A "A_log", RECUR_HEADS, 0, 0), SH_VECTOR(RECUR_STEP, A "dt_bias", RECUR_HEADS, 0, 0),
    SH_VECTOR(RECUR_NORM_W, A "o_norm.weight", RECUR_HEAD, 0, 0),
    SH_MATRIX(RECUR_OUT_W, A "o_proj.weight", MODEL, RECUR_VALUES, 0), {.name = NULL}};

/* Null or absent: as many heads as attention has; three quarters of the model's width; twice that. */
static int read_heads(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    int doubles = 1;
    if (sh_config_flag(c, "linear_allow_neg_eigval", &doubles, e))
        return -1;
    r->n_k = r->n_k ? r->n_k : a->n_head;
    r->n_v = r->n_v ? r->n_v : a->n_head;
    r->d_k = r->d_k ? r->d_k : (int)(0.75 * a->d_model / r->n_k);
    r->d_v = r->d_v ? r->d_v : 2 * r->d_k;
    r->strength = doubles ? 2 : 1;
    if (r->d_k < 1 || r->d_k > SH_DELTA_KEY)
        return sh_config_refuse(c, "linear_key_head_dim", "1 to 256, by default three quarters of hidden_size over "
                                "linear_num_key_heads", e);
    return sh_config_check_delta(c, a, e);
}

/* If the base is null, in the object of the rotation or outside it, nothing is rotated. */
static int rotates(const struct sh_config *c)
{
    const char *key = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling.rope_theta" : "rope_parameters.rope_theta";
    key = sh_config_has(c, key) ? key : "rope_theta";
    return !sh_config_has(c, key) || !sh_config_is_null(c, key);
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    int last = a->n_layer - 1;
    if (sh_config_has(c, "layer_types.0") && sh_config_blocks(c, "layer_types", kinds, a, e))
        return -1;
    for (int i = 0; i <= last && !sh_config_has(c, "layer_types.0"); i++)
        sh_config_set_block(a, i, i % 4 == 3 || (last < 3 && i == last) ? SH_BLOCK_ATTENTION : SH_BLOCK_RECURRENT);
    a->pos = rotates(c) ? SH_POS_ROTARY : SH_POS_NONE;
    return read_heads(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_check_attends(c, "layer_types", a, e))
        return -1;
    return a->pos == SH_POS_ROTARY ? sh_config_whole_rope(a, c, e) : 0;
}

const struct sh_family sh_family_olmo_hybrid = {
    .special = "gated delta rule in three of four layers, norms before or after blocks by kind of layer",
    .name = "olmo_hybrid", .model_types = SH_WORDS("olmo_hybrid"),
    .architectures = SH_WORDS("OlmoHybridForCausalLM", "OlmoHybridModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BY_KIND, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY,
              .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 65536, .rotary_share = 1,
              .rope = {.base = 10000}, .recurrent = {.kernel = 4, .norm_eps = 1e-5f},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_WIDE},
    .keys = keys, .params = params, .only = SH_WORDS("hidden_act=\"silu\"", "mlp_bias=false"),
    .knows = " layer_types ", .shape = shape, .finish = finish};
