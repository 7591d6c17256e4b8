/* SPDX-License-Identifier: Apache-2.0 */
/* Jamba (Lieber et al., 2024): in each period of layers one has attention, without positions, and the others Mamba with
 * norms of its steps, b and c (recurrent.c); experts have a period of their own. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_COUNT_KEY(mix.n, 1e5, "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), SH_COUNT_KEY(recurrent.d_k, 1e5, "mamba_d_state"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "mamba_d_conv"), {.json = {NULL}}};

#define MAMBA SH_LAYER "mamba."
#define IN(part) SH_MAMBA_PART(part, MAMBA "in_proj", RECUR_VALUES)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "final_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "pre_ff_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION, IN(X), IN(Z),
    SH_MAMBA_CONV(MAMBA, VALUES), SH_MATRIX(RECUR_MIX_W, MAMBA "x_proj.weight", RECUR_RANK_B_C, RECUR_VALUES, 0),
    SH_MATRIX(RECUR_STEP_W, MAMBA "dt_proj.weight", RECUR_VALUES, RECUR_RANK, 0),
    SH_VECTOR(RECUR_STEP, MAMBA "dt_proj.bias", RECUR_VALUES, 0, 0),
    SH_VECTOR(RECUR_STEP_NORM_W, MAMBA "dt_layernorm.weight", RECUR_RANK, 0, 0),
    SH_VECTOR(RECUR_B_NORM_W, MAMBA "b_layernorm.weight", RECUR_STATE, 0, 0),
    SH_VECTOR(RECUR_C_NORM_W, MAMBA "c_layernorm.weight", RECUR_STATE, 0, 0),
    SH_MATRIX(RECUR_LOG_A, MAMBA "A_log", RECUR_VALUES, RECUR_STATE, 0),
    SH_VECTOR(RECUR_SKIP, MAMBA "D", RECUR_VALUES, 0, 0), SH_MAMBA_OUT(MAMBA),
    SH_DENSE(GATE, "feed_forward.gate_proj", FF, MODEL), SH_DENSE(UP, "feed_forward.up_proj", FF, MODEL),
    SH_DENSE(DOWN, "feed_forward.down_proj", MODEL, FF), SH_ROUTER("feed_forward.router.weight"),
    SH_EXPERTS("feed_forward.experts", "gate_proj", "up_proj", "down_proj"), {.name = NULL}};

struct period { int length, offset; };

/* One layer in each period. */
static int read_period(const struct sh_config *c, const char *length, const char *offset, struct period *p,
                       struct sh_err *e)
{
    if (sh_config_count(c, length, 100000000, &p->length, e) ||
        sh_config_at_least(c, offset, 0, 100000000, &p->offset, e))
        return -1;
    return p->offset < p->length ? 0 : sh_config_refuse(c, offset, "less than the period", e);
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"mamba", SH_BLOCK_RECURRENT}, {NULL, 0}};
    struct sh_recurrent *r = &a->recurrent;
    struct period attends = {8, 4}, mixes = {2, 1};
    int expand = 2, conv = 1, biases = 0;
    r->rank = a->d_model / 16 + (a->d_model % 16 != 0);
    if (read_period(c, "attn_layer_period", "attn_layer_offset", &attends, e) ||
        read_period(c, "expert_layer_period", "expert_layer_offset", &mixes, e) ||
        sh_config_auto(c, "mamba_dt_rank", 1000000, &r->rank, e) ||
        sh_config_count(c, "mamba_expand", 16, &expand, e) || sh_config_flag(c, "mamba_conv_bias", &conv, e) ||
        sh_config_flag(c, "mamba_proj_bias", &biases, e))
        return -1;
    if (a->d_model > 1000000 / expand)
        return sh_config_refuse(c, "hidden_size", "at most 10^6 / mamba_expand", e);
    r->n_v = expand * a->d_model;
    r->has_conv_bias = conv;
    r->has_bias = r->has_out_bias = biases;
    if (sh_config_is_gguf(c)) {         /* such files have lists                            */
        if (sh_config_blocks(c, "layer_types", kinds, a, e) || sh_mixture_listed(a, c, 0, e))
            return -1;
        attends.length = 0;
    }
    for (int i = 0; i < a->n_layer && attends.length; i++) {
        sh_config_set_block(a, i, i % attends.length == attends.offset ? SH_BLOCK_ATTENTION : SH_BLOCK_RECURRENT);
        if (i % mixes.length != mixes.offset)
            sh_arch_keep_dense(a, i);
    }
    a->mix.width = a->d_ff;
    if (a->mix.n == 1)                  /* then the layers are plain */
        a->mix.n = a->mix.used = a->mix.width = 0;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_scan(c, "mamba_expand", a, e) || sh_config_check_attends(c, "attn_layer_offset", a, e)
               ? -1 : 0;
}

const struct sh_family sh_family_jamba = {
    .special = "state-space layers (Mamba), attention in one of eight, experts",
    .name = "jamba", .model_types = SH_WORDS("jamba"), .architectures = SH_WORDS("JambaForCausalLM", "JambaModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_NONE, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 262144,
              .recurrent = {.kind = SH_STATE_SPACE, .n_k = 1, .d_k = 16, .d_v = 1, .kernel = 4},
              .mix = {.n = 16, .used = 2, .scale = 1}, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_jamba,
    .only = SH_WORDS("hidden_act=\"silu\""),
    .knows = " attn_layer_period expert_layer_period sliding_window layer_types mlp_layer_types ", .shape = shape,
    .finish = finish};
