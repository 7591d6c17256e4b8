/* SPDX-License-Identifier: Apache-2.0 */
/* A.X-K2 (SK Telecom, 2026): DeepSeek-V3.2 with a gate on the norms before blocks (block_norm.c) and one on attention's
 * output. Queries and the second gate come from one product of the queries' latent, normed and unnormed. It runs on
 * texts so short that its index chooses all tokens. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_LATENT_KEYS, SH_DEEPSEEK_MIXTURE, SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts"),
    SH_COUNT_KEY(norm_rank, 1e5, "gated_norm_rank"), {.json = {NULL}}};

#define A SH_LAYER "self_attn."
#define ATTN SH_LAYER "input_layernorm."
#define MLP SH_LAYER "post_attention_layernorm."
#define IF_MIXED(part, tensor, out, in) \
    {.role = SH_##part, .name = MLP tensor, .rows = out, .cols = in, .needs = SH_EXPERT_LAYER}
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, ATTN "norm.weight", MODEL, 0),
    SH_MATRIX(ATTN_NORM_IN_W, ATTN "W_down.weight", NORM_RANK, MODEL, 0),
    SH_MATRIX(ATTN_NORM_OUT_W, ATTN "W_up.weight", MODEL, NORM_RANK, 0),
    IF_MIXED(MLP_NORM_W, "norm.weight", SH_ONE, SH_DIM_MODEL),
    IF_MIXED(MLP_NORM_IN_W, "W_down.weight", SH_DIM_NORM_RANK, SH_DIM_MODEL),
    IF_MIXED(MLP_NORM_OUT_W, "W_up.weight", SH_DIM_MODEL, SH_DIM_NORM_RANK),
    {.role = SH_MLP_NORM_W, .name = MLP "weight", .cols = SH_DIM_MODEL, .unless = SH_EXPERT_LAYER},
    SH_MATRIX(Q_A_W, A "q_a_proj.weight", Q_RANK, MODEL, 0),
    SH_VECTOR(Q_A_B, A "q_a_proj.bias", Q_RANK, SH_HAS_BIAS, 0),
    SH_NORM_WEIGHT(Q_A_NORM, A "q_a_layernorm.weight", Q_RANK, 0),
    SH_MATRIX(Q_B_W, A "q_b_proj.weight", Q_B, Q_RANKS, SH_BY_HEAD),
    SH_MATRIX(ATTN_GATE_W, A "q_b_proj.weight", VALUES, Q_RANKS, SH_BY_HEAD),
    SH_LATENT_KEYS_VALUES(A, "o_proj"), SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_null(c, "q_lora_rank"))
        return sh_config_refuse(c, "q_lora_rank", "a whole number", e);
    return sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 16, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 2048, "index_topk"), {.json = {NULL}}};

/* All layers have an index. The product that makes queries has an input of twice the width and also makes a gate. The
 * norms' gates are two matrices each; those of layers with experts are counted with what is not in every layer. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    long long rows = (long long)f->heads * (f->nope_dim + f->rope_dim + 2LL * f->v_dim);
    int rank = 16, n = (int)strlen(f->feeds);
    if (sh_facts_count(c, "gated_norm_rank", 1, &rank, e))
        return -1;
    snprintf(f->pattern, sizeof f->pattern, "I");
    f->query_gate = 0;                  /* it is among these rows                                 */
    f->layer_more = rows * f->q_latent + 2LL * rank * f->hidden;
    for (int i = 0; i < f->layers && n; i++)
        f->ends_more += f->feeds[i % n] == 'E' ? 2LL * rank * f->hidden : 0;
    return 0;
}

const struct sh_family sh_family_axk2 = {
    .special = "latent attention to the tokens that an index chooses, gates on it and on norms",
    .name = "axk2", .model_types = SH_WORDS("axk2"), .architectures = SH_WORDS("AXK2ForCausalLM", "AXK2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .norm_rank = 16,
              .latent = {.rank = 128, .q_rank = 384, .d_rope = 32, .d_nope = 64, .d_v = 64, .both = 1},
              .mix = {.n = 128, .used = 8, .width = 512, .scale = 2.5f, .route = SH_ROUTE_SIGMOID, .by_best_two = 1,
                      .others_are_0 = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION | SH_ATTENTION_GATE},
    .keys = keys, .params = params, .only = SH_WORDS("moe_layer_freq=1", "mlp_bias=false", "rope_interleave=true"),
    .facts = facts,
    .knows = " layer_types mlp_layer_types num_local_experts first_k_dense_replace moe_layer_freq "
             "num_nextn_predict_layers ",
    .shape = shape, .finish = sh_indexed_finish, .count = count};
