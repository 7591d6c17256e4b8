/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMax-Text-01 (2025): Lightning Attention, which is linear (recurrent.c), in most layers, Mixtral's experts, and
 * norms whose output replaces the hidden state that a block's output is added to, with factors of both summands. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts", "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    {.json = {NULL}}};

#define A SH_LAYER "self_attn."
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_MATRIX(RECUR_Q_W, A "qkv_proj.weight", RECUR_KEYS, MODEL, SH_BY_RECUR_HEAD),
    SH_MATRIX(RECUR_K_W, A "qkv_proj.weight", RECUR_KEYS, MODEL, SH_BY_RECUR_HEAD),
    SH_MATRIX(RECUR_V_W, A "qkv_proj.weight", RECUR_VALUES, MODEL, SH_BY_RECUR_HEAD),
    SH_MATRIX(RECUR_Z_W, A "output_gate.weight", RECUR_VALUES, MODEL, 0),
    SH_VECTOR(RECUR_NORM_W, A "norm.weight", RECUR_VALUES, 0, 0),
    SH_MATRIX(RECUR_OUT_W, A "out_proj.weight", MODEL, RECUR_VALUES, 0), SH_ROUTER("block_sparse_moe.gate.weight"),
    SH_MIXTRAL_EXPERTS, {.name = NULL}};

/* layer_types or, without it, every other layer, from the first one on, attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    if (sh_config_is_set(c, "layer_types"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, i % 2 ? SH_BLOCK_RECURRENT : SH_BLOCK_ATTENTION);
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    if (!sh_config_has(c, "num_key_value_heads"))
        a->n_kv_head = 8;
    r->n_k = r->n_v = a->n_head;
    r->d_k = r->d_v = a->d_head ? a->d_head : a->d_model / a->n_head;
    if (!r->d_k)
        return sh_config_refuse(c, "num_attention_heads", "no more heads than hidden_size", e);
    return sh_config_check_scan(c, "num_attention_heads", a, e) || read_layers(a, c, e) || sh_window_shape(a, c, e) ||
           sh_mixture_shape(a, c, e) ? -1 : 0;
}

static int read_factor(const struct sh_config *c, const char *key, float *out, struct sh_err *e)
{
    *out = 1;
    if (sh_config_real(c, key, 1e6, out, e))
        return -1;
    return *out > 0 ? 0 : sh_config_refuse(c, key, "a number above 0", e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float *kept = a->kept_scale, *added = a->own_scale;
    return read_factor(c, "full_attn_alpha_factor", &kept[SH_ADDS_ATTENTION], e) ||
           read_factor(c, "full_attn_beta_factor", &added[SH_ADDS_ATTENTION], e) ||
           read_factor(c, "linear_attn_alpha_factor", &kept[SH_ADDS_RECURRENCE], e) ||
           read_factor(c, "linear_attn_beta_factor", &added[SH_ADDS_RECURRENCE], e) ||
           read_factor(c, "mlp_alpha_factor", &kept[SH_ADDS_FEED], e) ||
           read_factor(c, "mlp_beta_factor", &added[SH_ADDS_FEED], e) ||
           sh_config_check_attends(c, "layer_types", a, e) || sh_config_whole_rope(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_minimax = {
    .special = "linear attention in most layers, experts, norms that replace the hidden states",
    .name = "minimax", .model_types = SH_WORDS("minimax"),
    .architectures = SH_WORDS("MiniMaxForCausalLM", "MiniMaxModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 1e6f), .norm_place = SH_NORM_TAKEN,
              .recurrent = {.kind = SH_LIGHTNING, .kernel = 1, .normed = 1, .norm_eps = 1e-6f},
              .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN}, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .only = SH_WORDS("attention_bias=false", "mlp_bias=false"),
    .knows = " layer_types attn_type_list sliding_window num_experts ", .shape = shape, .finish = finish};
