/* SPDX-License-Identifier: Apache-2.0 */
/* DBRX (Databricks, 2024): experts in every layer, stacked in three matrices, layer norms without biases, clipped
 * queries, keys and values in one tensor. The base of the rotation is attn_config.rope_theta, as in the code that comes
 * with the files and in llama.cpp; transformers 5 reads it elsewhere. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(rope.base, 1e12, "attn_config.rope_theta"), SH_REAL_KEY(clip, 1e6, "attn_config.clip_qkv"),
    SH_COUNT_KEY(n_kv_head, 1e5, "attn_config.kv_n_heads"), SH_COUNT_KEY(d_ff, 1e8, "ffn_config.ffn_hidden_size"),
    SH_COUNT_KEY(mix.n, 1e5, "ffn_config.moe_num_experts"), SH_COUNT_KEY(mix.used, 1e5, "ffn_config.moe_top_k"),
    SH_REAL_KEY(norm_eps, 1, "gguf.layer_norm_epsilon"), {.json = {NULL}}};

#define B "blocks.#."
#define QKV B "norm_attn_norm.attn.Wqkv.weight"
#define EXPERTS B "ffn.experts.mlp."
#define PART(part, tensor, out, in, how) \
    {.role = SH_EXPERT_##part##_W, .name = EXPERTS tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, \
     .needs = SH_EXPERT_LAYER, .form = how, .count = SH_DIM_EXPERTS}
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(FINAL_NORM, "norm_f.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, B "norm_attn_norm.norm_1.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, B "norm_attn_norm.norm_2.weight", MODEL, 0), SH_MATRIX(Q_W, QKV, Q, MODEL, 0),
    SH_MATRIX(K_W, QKV, KV, MODEL, 0), SH_MATRIX(V_W, QKV, KV, MODEL, 0),
    SH_MATRIX(O_W, B "norm_attn_norm.attn.out_proj.weight", MODEL, Q, 0),
    {.role = SH_ROUTER_W, .name = B "ffn.router.layer.weight", .rows = SH_DIM_EXPERTS, .cols = SH_DIM_MODEL,
     .needs = SH_EXPERT_LAYER},
    PART(GATE, "w1", EXPERT_FF, MODEL, 0), PART(UP, "v1", EXPERT_FF, MODEL, 0),
    PART(DOWN, "w2", MODEL, EXPERT_FF, SH_TRANSPOSED), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char power[] = "ffn_config.moe_normalize_expert_weights";
    float norm = 1;                     /* 1.0 in the files that transformers writes                  */
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    a->mix.width = a->d_ff;
    if (sh_config_real(c, power, 1e6, &norm, e))
        return -1;
    if (norm < 1 || norm > 1)
        return sh_config_refuse(c, power, "1 or null", e);
    a->flags |= sh_config_is_null(c, power) ? 0u : SH_MIX_NORMED;
    return 0;
}

const struct sh_family sh_family_dbrx = {
    .special = "experts in three matrices, layer norms, clipped queries, keys and values",
    .name = "dbrx", .model_types = SH_WORDS("dbrx"), .architectures = SH_WORDS("DbrxForCausalLM", "DbrxModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {SH_LAYER_NORM_START, .act = SH_ACT_SILU, .max_pos = 2048, .rotary_share = 1, .n_kv_head = 1,
              .d_ff = 3584, .mix = {.n = 4, .used = 1}, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_dbrx,
    .only = SH_WORDS("ffn_config.ffn_act_fn.name=\"silu\"", "ffn_config.uniform_expert_assignment=false",
                     "rope_scaling=null", "head_dim=null"), .shape = shape, .finish = sh_config_whole_rope};
