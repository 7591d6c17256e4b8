/* SPDX-License-Identifier: Apache-2.0 */
/* Hy4 (Tencent, 2026): latent attention to the tokens that an index chooses, with sinks and a gate; experts with
 * limited SwiGLU; hyper-connections (hyper.c). It runs on texts so short that the index chooses all tokens. Also the
 * text part of models with pictures, in which the norms of latents have the config's epsilon and rotary pairs are
 * neighbours. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_LATENT_KEYS, SH_DEEPSEEK_MIXTURE, SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts"),
    SH_COUNT_KEY(streams.n, 64, "hc_mult"), SH_REAL_KEY(streams.most, 1e6, "hc_magnitude"),
    SH_REAL_KEY(streams.least, 1, "hc_eps"), {.json = {NULL}}};

#define A SH_LAYER "self_attn."
#define HYPER_HEAD(stem) SH_HYPER(HEAD, stem, STREAMS), {.role = SH_HYPER_HEAD_SCALE, .name = stem "scale"}
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LATENT_ATTENTION(A, "o_proj"),
    SH_MATRIX(ATTN_GATE_W, A "linear_gate.weight", VALUES, MODEL, 0),
    SH_MATRIX(ATTN_GATE_W, A "gate_proj.weight", VALUES, MODEL, 0),
    SH_VECTOR(SINKS, A "learnable_sink_param", HEADS, 0, 0), SH_VECTOR(SINKS, A "sinks", HEADS, 0, 0), SH_LLAMA_FEED,
    SH_DENSE(GATE, "mlp.linear_gate", FF, MODEL), SH_ROUTER("mlp.gate.weight"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"),
    SH_SHARED_PART(GATE, "mlp.shared_experts.linear_gate.weight", SHARED_FF, MODEL),
    SH_HYPER_OF(ATTN, "hc_attn_layer.hc_pre.hc_"), SH_HYPER_OF(ATTN, "hc_pre.hc_attn_layer.hc_"),
    SH_HYPER_OF(ATTN, "hc_attn_layer.hc_"), SH_HYPER_OF(ATTN, "attn_hc."),
    SH_HYPER_OF(MLP, "hc_mlp_layer.hc_pre.hc_"), SH_HYPER_OF(MLP, "hc_pre.hc_mlp_layer.hc_"),
    SH_HYPER_OF(MLP, "hc_mlp_layer.hc_"), SH_HYPER_OF(MLP, "ffn_hc."), HYPER_HEAD("hc_head.hc_head_"),
    HYPER_HEAD("hc_head.hc_pre.hc_head_"), HYPER_HEAD("hc_pre.hc_head.hc_head_"), HYPER_HEAD("hc_head.hc_"),
    {.name = NULL}};

int sh_hyper_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return a->streams.n < 2 || (long long)a->streams.n * a->d_model > 100000000
               ? sh_config_refuse(c, "hc_mult", "at least 2 streams, of at most 10^8 numbers together", e) : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_null(c, "q_lora_rank"))
        return sh_config_refuse(c, "q_lora_rank", "a whole number", e);
    a->streams.least_added = a->streams.least;
    return sh_hyper_shape(a, c, e) || sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

/* Limits before the activation come to the same after it. */
int sh_swiglu_limit(struct sh_arch *a, const struct sh_config *c, enum sh_limited what, struct sh_err *e)
{
    struct sh_limits *m = &a->limits[what];
    m->up = 10;
    if (sh_config_real(c, "swiglu_limit", 1e6, &m->up, e))
        return -1;
    if (m->up < 0.5f)
        return sh_config_refuse(c, "swiglu_limit", "a number of at least 0.5", e);
    m->gate = m->up / (1 + expf(-m->up));
    for (int i = 0; i < a->n_layer; i++)
        sh_arch_limit(a, i, what);
    return 0;
}

static int finish_both(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_swiglu_limit(a, c, SH_LIMITS_EXPERTS, e) || sh_indexed_finish(a, c, e) ? -1 : 0;
}

/* Rotary pairs are half a head apart; with pictures they are neighbours. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_check_only(c, "rope_interleave=false", e) || finish_both(a, c, e))
        return -1;
    a->flags &= ~(unsigned)SH_IN_PAIRS;
    return 0;
}

static int finish_vl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->latent.eps = a->norm_eps;
    return sh_config_check_only(c, "rope_interleave=true", e) || finish_both(a, c, e) ? -1 : 0;
}

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 16, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 2048, "index_topk"), {.json = {NULL}}};
static const struct sh_fact_key facts_vl[] = {
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 32, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 2048, "index_topk"), {.json = {NULL}}};

/* The first layer and every fourth after the second have an index of their own, unless a list says otherwise. Besides:
 * sinks, and what joins the streams, before each block and at the end. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full", 'I'}, {"shared", 'G'}, {NULL, 0}};
    int n = 4;
    if (sh_facts_count(c, "hc_mult", 1, &n, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    if (sh_config_length(c, "indexer_types") > 0 ? sh_facts_pattern(c, "indexer_types", words, f, e) : 0)
        return -1;
    for (int i = 0; i < f->layers && sh_config_length(c, "indexer_types") <= 0; i++) {
        f->pattern[i] = !i || (i - 1) % 4 == 0 ? 'I' : 'G';
        f->pattern[i + 1] = '\0';
    }
    f->layer_more += 4LL * n * n * f->hidden;
    f->vectors_more += f->heads + 4LL * n + 4;
    f->ends_more += (long long)n * n * f->hidden + n + 1;
    return 0;
}

#define HY4(rank_of_queries) \
    SH_LLAMA_START_EPS(1e-5f), \
    .latent = {.rank = 512, .q_rank = rank_of_queries, .d_rope = 64, .d_nope = 192, .d_v = 256}, \
    .streams = {.n = 4, .hyper = 1, .most = 2, .least = 1e-6f}, \
    .mix = {.n = 256, .used = 8, .groups = 1, .used_groups = 1, .scale = 2.827f, .route = SH_ROUTE_SIGMOID, \
            .by_best_two = 1
#define HY4_FLAGS \
    .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION | SH_ATTENTION_GATE | SH_HAS_SINKS
#define HY4_FAMILY \
    .special = "latent attention by an index with sinks and a gate, several residual streams", .keys = keys, \
    .params = params, .shape = shape, .count = count, \
    .knows = " layer_types mlp_layer_types num_local_experts first_k_dense_replace num_nextn_predict_layers " \
             "indexer_types "

const struct sh_family sh_family_hy_v4 = {
    .name = "hy_v4", .model_types = SH_WORDS("hy_v4"), .architectures = SH_WORDS("HYV4ForCausalLM", "HYV4Model"),
    .prefixes = sh_llama_prefixes, .start = {HY4(1536), .width = 768}, .d_ff = 6912, HY4_FLAGS}, HY4_FAMILY,
    .only = SH_WORDS("hidden_act=\"silu\""), .facts = facts, .finish = finish};

const struct sh_family sh_family_hy_v4_vl = {
    .name = "hy_v4_vl", .model_types = SH_WORDS("hy_v4_vl_text", "hy_v4_vl"),
    .architectures = SH_WORDS("HYV4VLForConditionalGeneration", "HYV4VLModel", "HYV4VLTextModel"),
    .prefixes = SH_WORDS("model.", "", "model.language_model.", "language_model.model.", "language_model."),
    .start = {HY4(2048), .width = 2048}, .d_ff = 18432, HY4_FLAGS}, HY4_FAMILY,
    .only = SH_WORDS("hidden_act=\"silu\"", "tie_word_embeddings=false"), .facts = facts_vl, .finish = finish_vl};
