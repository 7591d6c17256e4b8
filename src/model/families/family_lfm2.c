/* SPDX-License-Identifier: Apache-2.0 */
/* LFM2 (Liquid AI, 2025): short convolutions between gates (recurrent.c) in most layers, attention with a norm of each
 * query and key in the others. LFM2-MoE: experts chosen by sigmoids with a correction, after the first layers. LFM3
 * (2026): norms on the blocks' outputs, windows in some of the layers that attend, a gate for each head. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define KEYS \
    SH_REAL_KEY(norm_eps, 1, "norm_eps", "block_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "conv_L_cache"), SH_FLAG_KEY(SH_TIED_HEAD, "tie_embedding")
static const struct sh_key keys[] = {KEYS, SH_COUNT_KEY(d_ff, 1e8, "block_ff_dim"), {.json = {NULL}}};
static const struct sh_key keys_moe[] = {
    KEYS, SH_COUNT_KEY(mix.n, 1e5, "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor"), SH_FLAG_KEY(SH_HAS_CORRECTION, "use_expert_bias"),
    {.json = {NULL}}};

#define ATTENTION(part, stem, out, in) SH_MATRIX(part##_W, SH_LAYER "self_attn." stem ".weight", out, in, 0)
#define IN(part) SH_MAMBA_PART(part, SH_LAYER "conv.in_proj", RECUR_VALUES)
#define PARAMS \
    PARAMS_APART, ATTENTION(Q, "q_proj", Q, MODEL), \
    ATTENTION(K, "k_proj", KV, MODEL), ATTENTION(V, "v_proj", KV, MODEL), ATTENTION(O, "out_proj", MODEL, Q), \
    SH_QK_NORM(Q_NORM, "self_attn.q_layernorm.weight", Q), SH_QK_NORM(K_NORM, "self_attn.k_layernorm.weight", KV)
/* … but for attention */
#define PARAMS_APART \
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "embedding_norm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "operator_norm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "ffn_norm.weight", MODEL, 0), \
    IN(B), IN(Z), IN(X), SH_MATRIX(RECUR_CONV, SH_LAYER "conv.conv.weight", RECUR_CHANNELS, RECUR_KERNEL, 0), \
    SH_VECTOR(RECUR_CONV_B, SH_LAYER "conv.conv.bias", RECUR_CHANNELS, 0, 0), SH_MAMBA_OUT(SH_LAYER "conv."), \
    SH_DENSE(GATE, "feed_forward.w1", FF, MODEL), SH_DENSE(UP, "feed_forward.w3", FF, MODEL), \
    SH_DENSE(DOWN, "feed_forward.w2", MODEL, FF)
static const struct sh_param params[] = {PARAMS, {.name = NULL}};
static const struct sh_param params_moe[] = {
    PARAMS, SH_ROUTER("feed_forward.gate.weight"), SH_EXPERTS("feed_forward.experts", "w1", "w3", "w2"),
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "feed_forward.expert_bias", .cols = SH_DIM_EXPERTS,
     .needs = SH_EXPERT_LAYER | SH_HAS_CORRECTION}, {.name = NULL}};

/* layer_types or, before, full_attn_idxs; without both, every layer attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"conv", SH_BLOCK_RECURRENT}, {NULL, 0}};
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    return sh_config_attending(c, "full_attn_idxs", a, e) < 0 ? -1 : 0;
}

/* For dense models and for those with experts. */
static int read_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int biases = 0;
    a->recurrent.n_v = 1;
    a->recurrent.d_v = a->d_model;
    if (sh_config_flag(c, "conv_bias", &biases, e))
        return -1;
    a->recurrent.has_bias = a->recurrent.has_out_bias = a->recurrent.has_conv_bias = biases;
    return read_layers(a, c, e);
}

/* The feed-forward block is by default two thirds as wide as the config says, times a number, rounded up. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int adjusts = 1, multiple = 256;
    float by = 1;
    if (sh_config_flag(c, "block_auto_adjust_ff_dim", &adjusts, e) ||
        sh_config_real(c, "block_ffn_dim_multiplier", 1000, &by, e) ||
        sh_config_count(c, "block_multiple_of", 100000000, &multiple, e))
        return -1;
    if (adjusts) {
        double width = (double)by * (int)(2LL * a->d_ff / 3);
        long long rounded = ((long long)width + multiple - 1) / multiple * multiple;
        if (rounded < 1 || rounded > 100000000)
            return sh_config_refuse(c, "block_ffn_dim_multiplier", "a width of 1 to 10^8", e);
        a->d_ff = (int)rounded;
    }
    return read_shape(a, c, e);
}

static int shape_moe(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return read_shape(a, c, e) || sh_mixture_after(a, c, "num_dense_layers", 2, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layer_types", a, e) || sh_config_whole_rope(a, c, e) ? -1 : 0;
}

#define START \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, \
    .init_std = 0.02f, .max_pos = 128000, .rotary_share = 1, .rope = {.base = 1e6f}, \
    .recurrent = {.kind = SH_SHORT_CONV, .kernel = 3}
#define FLAGS (SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_TIED_HEAD)
#define KNOWS " layer_types "

const struct sh_family sh_family_lfm2 = {
    .special = "short convolutions, attention in a few layers",
    .name = "lfm2", .model_types = SH_WORDS("lfm2"), .architectures = SH_WORDS("Lfm2ForCausalLM", "Lfm2Model"),
    .prefixes = sh_llama_prefixes, .start = {START, .flags = FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_lfm2,
    .only = SH_WORDS("block_use_swiglu=true"), .knows = KNOWS, .shape = shape, .finish = finish};

const struct sh_family sh_family_lfm2_moe = {
    .special = "short convolutions, attention in a few layers, experts by corrected sigmoids",
    .name = "lfm2_moe", .model_types = SH_WORDS("lfm2_moe"),
    .architectures = SH_WORDS("Lfm2MoeForCausalLM", "Lfm2MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {START, .mix = {.n = 32, .used = 4, .width = 1792, .route = SH_ROUTE_SIGMOID, .scale = 1},
              .flags = FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION},
    .keys = keys_moe, .params = params_moe,
    .gguf = &sh_gguf_lfm2_moe, .knows = KNOWS " num_dense_layers ", .shape = shape_moe, .finish = finish};

/* ---- LFM3 ---- */

static const struct sh_key keys_3[] = {
    SH_REAL_KEY(norm_eps, 1, "norm_eps", "rms_norm_eps"), SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "conv_L_cache"),
    SH_FLAG_KEY(SH_ATTENTION_GATE, "use_attention_gate"), {.json = {NULL}}};

static const struct sh_param params_3[] = {
    PARAMS_APART, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    {.role = SH_ATTN_GATE_W, .name = SH_LAYER "self_attn.gate_proj.weight", .rows = SH_DIM_GATES, .cols = SH_DIM_MODEL,
     .needs = SH_ATTENTION_GATE},
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_operator_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_ffn_norm.weight", MODEL, 0), {.name = NULL}};

/* Layer by layer from layer_types. Without it, of each four layers the third sees all tokens, and the first has a
 * window, except in the first four. */
static int shape_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"full_attention", 1}, {"sliding_attention", 2}, {"conv", 3}, {NULL, 0}};
    int biases = 0, listed = sh_config_has(c, "layer_types.0");
    a->recurrent.n_v = 1;
    a->recurrent.d_v = a->d_model;
    if (sh_config_flag(c, "conv_bias", &biases, e) || sh_config_window(c, 256, a, e))
        return -1;
    a->recurrent.has_bias = a->recurrent.has_out_bias = a->recurrent.has_conv_bias = biases;
    for (int i = 0; i < a->n_layer; i++) {
        int kind = i % 4 == 2 ? 1 : i % 4 == 0 && i ? 2 : 3;
        if (listed && sh_config_choice_at(c, "layer_types", i, kinds, &kind, e))
            return -1;
        if (kind != 2)
            sh_arch_see_all(a, i);
        if (kind == 3)
            sh_arch_make_linear(a, i);
    }
    return 0;
}

static int finish_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->rope.kind = SH_ROPE_PROPORTIONAL;        /* if the file does not say                           */
    a->rope.factor = 1;
    a->rope.pairs = a->n_rot / 4;
    return sh_config_check_attends(c, "layer_types", a, e) || sh_config_whole_ropes_by_kind(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_lfm3 = {
    .special = "short convolutions, windows, a gate for each head, norms around blocks",
    .name = "lfm3", .model_types = SH_WORDS("lfm3"), .architectures = SH_WORDS("Lfm3ForCausalLM", "Lfm3Model"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 128000, .n_kv_head = 4, .d_head = 128, .rotary_share = 1,
              .rope = {.base = 1e6f}, .local_rope = {.base = 1e4f}, .recurrent = {.kind = SH_SHORT_CONV, .kernel = 7},
              .gates_heads = 1, .flags = FLAGS | SH_ATTENTION_GATE},
    .keys = keys_3, .params = params_3, .only = SH_WORDS("use_sandwich_norm=true"),
    .knows = " layer_types sliding_window ", .shape = shape_3, .finish = finish_3};
