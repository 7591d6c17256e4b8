/* SPDX-License-Identifier: Apache-2.0 */
/* GLM-5.3-Flash (Z.ai, 2026): Kimi Delta Attention (recurrent.c) in three of four layers, latent attention without
 * rotation to the tokens that an index chooses in the others; experts by corrected sigmoids; limited SwiGLU;
 * manifold-constrained hyper-connections (hyper.c). The index scores pools of tokens. It runs on texts so short that
 * the index chooses all tokens. Also the text part of models with pictures. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LISTS "linear_attn_config."

static const struct sh_key keys[] = {
    SH_STILL_LATENT_KEYS, SH_DEEPSEEK_MIXTURE, SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts"),
    SH_COUNT_KEY(recurrent.n_v, 1e5, LISTS "num_heads", "linear_num_heads"),
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, LISTS "head_dim", "linear_head_dim"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, LISTS "short_conv_kernel_size", "linear_conv_kernel_dim"),
    SH_COUNT_KEY(streams.n, 64, "hc_mult"), SH_COUNT_KEY(streams.rounds, 1000, "hc_sinkhorn_iters"),
    SH_REAL_KEY(streams.least, 1, "hc_eps"), {.json = {NULL}}};

/* What makes decays has a part of its own in the files that transformers writes, and the convolutions are one. */
#define A SH_LAYER "self_attn."
#define FORGET A "forget_gate."
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LATENT_ATTENTION(A, "o_proj"), SH_KDA(A, "o_proj"),
    SH_MATRIX(RECUR_CONV, A "conv1d.weight", RECUR_KEYS, RECUR_KERNEL, 0),
    SH_MATRIX(RECUR_CONV_K, A "conv1d.weight", RECUR_KEYS, RECUR_KERNEL, 0),
    SH_MATRIX(RECUR_CONV_V, A "conv1d.weight", RECUR_VALUES, RECUR_KERNEL, 0),
    SH_VECTOR(RECUR_LOG_A, FORGET "A_log", RECUR_HEADS, 0, 0),
    SH_VECTOR(RECUR_STEP, FORGET "dt_bias", RECUR_DECAYS, 0, 0),
    SH_KDA_RANKED(A, A "f_a_proj", A "f_b_proj", RECUR_DECAYS),
    SH_KDA_RANKED(A, FORGET "f_a_proj", FORGET "f_b_proj", RECUR_DECAYS),
    SH_KDA_RANKED(Z, A "g_a_proj", A "g_b_proj", RECUR_VALUES), SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), SH_HYPER_OF(ATTN, "hc_attn_"), SH_HYPER_OF(ATTN, "attn_hc."),
    SH_HYPER_OF(MLP, "hc_ffn_"), SH_HYPER_OF(MLP, "ffn_hc."), {.name = NULL}};

/* layer_types or, without it, every fourth layer attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"indexed_attention", SH_BLOCK_ATTENTION},
        {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, i % 4 == 3 ? SH_BLOCK_ATTENTION : SH_BLOCK_RECURRENT);
    return 0;
}

/* The bound of decays: null is none, except in the released files' object, where safe_gate then gives it one. */
static int read_bound(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char own[] = LISTS "gate_lower_bound";
    const char *key = sh_config_has(c, own) ? own : "linear_lower_bound";
    int safe = sh_config_is_filled(c, "linear_attn_config");
    float *bound = &a->recurrent.decay_bound;
    if (sh_config_flag(c, LISTS "safe_gate", &safe, e))
        return -1;
    *bound = -5;
    if (!sh_config_is_null(c, key))
        return sh_config_below(c, key, -1000, bound, e);
    *bound = safe ? -5 : 0;
    return 0;
}

/* Latent attention without a rotary key. */
static int shape_latent(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_latent *t = &a->latent;
    if (!t->q_rank || sh_config_is_null(c, "q_lora_rank"))
        return sh_config_refuse(c, "q_lora_rank", "a whole number from 1 on", e);
    a->flags |= SH_Q_LATENT;
    a->d_head = t->rank;
    a->n_rot = 0;
    a->n_kv_head = 1;
    t->eps = a->norm_eps;
    return sh_mixture_needs(c, t->rank, "kv_lora_rank", e) || sh_mixture_needs(c, t->d_nope, "qk_nope_head_dim", e) ||
           sh_mixture_needs(c, t->d_v, "v_head_dim", e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->recurrent.gate_rank = a->recurrent.d_k;
    return sh_hyper_shape(a, c, e) || shape_latent(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 3, e) || read_layers(a, c, e) || read_bound(a, c, e) ? -1 : sh_kda_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int chosen = 2048, pool = 16;
    if (sh_config_count(c, "index_topk", (int)1e8, &chosen, e) || sh_config_count(c, "index_kpool", (int)1e8, &pool, e))
        return -1;
    if (!pool || chosen % pool)
        return sh_config_refuse(c, "index_kpool", "a divisor of index_topk", e);
    return sh_swiglu_limit(a, c, SH_LIMITS_EXPERTS, e) || sh_swiglu_limit(a, c, SH_LIMITS_OTHERS, e) ||
           sh_config_check_attends(c, "layer_types", a, e) || sh_latent_still(a, c, e) || sh_index_limit(a, c, e)
               ? -1 : 0;
}

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 32, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 2048, "index_topk"), SH_USUAL_FACT(index_pool, 1, 16, "index_kpool"),
    {.json = {NULL}}};

/* Which of the layers that attend have an index of their own, and what pools its keys. Besides: what joins and mixes
 * the streams, before each block. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    char attends[SH_FACTS_PATTERN];
    int n = 4;
    long long own = 0;
    snprintf(attends, sizeof attends, "%s", f->pattern);
    int period = (int)strlen(attends);
    if (f->index_pool > 1000000)
        return sh_config_refuse(c, "index_kpool", "at most 10^6", e);
    if (sh_facts_count(c, "hc_mult", 1, &n, e) || sh_index_pattern(c, f, e))
        return -1;
    for (int i = 0; i < f->layers; i++) {
        f->pattern[i] = attends[i % period] == 'S' ? 'S' : f->pattern[i];
        own += f->pattern[i] == 'I';
    }
    long long weights = (2LL + n) * n;
    f->layer_more += 2 * weights * n * f->hidden;
    f->vectors_more += 2 * (weights + 3);
    f->ends_more += own * f->index_dim * ((long long)f->hidden + f->index_pool);
    return 0;
}

const struct sh_family sh_family_glm5_next = {
    .special = "Kimi delta attention in most layers, latent attention by an index, mixed residual streams",
    .name = "glm5_next", .model_types = SH_WORDS("glm5_next_text", "glm5_next"),
    .architectures = SH_WORDS("Glm5NextForConditionalGeneration", "Glm5NextForCausalLM", "Glm5NextModel",
                              "Glm5NextTextModel"),
    .prefixes = SH_WORDS("model.", "", "model.language_model.", "language_model.model.", "language_model."),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_NONE, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 1048576, .d_ff = 12288,
              .latent = {.rank = 512, .q_rank = 1536, .d_nope = 256, .d_v = 256},
              .recurrent = {.n_v = 64, .d_k = 128, .kernel = 4},
              .streams = {.n = 4, .hyper = 1, .rounds = 20, .most = 2, .least = 1e-6f},
              .mix = {.n = 288, .used = 8, .width = 2048, .groups = 1, .used_groups = 1, .scale = 2.5f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION},
    .keys = keys, .params = params, .facts = facts,
    .only = SH_WORDS("hidden_act=\"silu\"", "mlp_bias=false", "moe_layer_freq=1", "qk_rope_head_dim=0",
                     "index_kpool_always_select_tail=true", "tie_word_embeddings=false"),
    .unread = SH_WORDS("head_dim"),
    .knows = " layer_types mlp_layer_types num_local_experts first_k_dense_replace num_nextn_predict_layers "
             "linear_attn_config indexer_types index_topk_freq index_topk_pattern index_skip_topk_offset "
             "moe_layer_freq ",
    .shape = shape, .finish = finish, .count = count};
