/* SPDX-License-Identifier: Apache-2.0 */
/* Sarvam 30B (Sarvam AI, 2026): GLM-4.5's mixtures, but whole heads are rotated, and q, k and v are in one tensor.
 * Sarvam 105B: DeepSeek-V3 without groups of experts. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define MIX .groups = 1, .used_groups = 1, .scale = 2.5f, .route = SH_ROUTE_SIGMOID, .by_best_two = 1
#define KNOWS " first_k_dense_replace num_nextn_predict_layers n_shared_experts num_shared_experts "

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_FLAG_KEY(SH_HAS_QK_NORM, "use_qk_norm"), SH_FLAG_KEY(SH_HAS_BIAS, "use_qkv_bias"), SH_DEEPSEEK_MIXTURE,
    {.json = {NULL}}};

#define A SH_LAYER "attention."
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "word_embeddings.weight", VOCAB, EMBED, 0), SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM,
    SH_LLAMA_IN_NORMS, SH_LINEAR(Q, A "query_key_value", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, A "query_key_value", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, A "query_key_value", KV, MODEL, SH_HAS_BIAS, 0), SH_MATRIX(O_W, A "dense.weight", MODEL, Q, 0),
    SH_VECTOR(Q_NORM_W, A "query_layernorm.weight", HEAD, SH_HAS_QK_NORM, 0),
    SH_VECTOR(K_NORM_W, A "key_layernorm.weight", HEAD, SH_HAS_QK_NORM, 0), SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.gate.expert_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int read_mixture(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *shared = sh_config_has(c, "n_shared_experts") ? "n_shared_experts" : "num_shared_experts";
    return sh_mixture_shared(a, c, shared, 1, e) || sh_mixture_after(a, c, "first_k_dense_replace", 1, e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_OUT_BIAS;     /* attention_bias is of q, k and v alone              */
    return read_mixture(a, c, e);
}

const struct sh_family sh_family_sarvam_moe = {
    .special = "experts by corrected sigmoids, a norm of each query and key",
    .name = "sarvam_moe", .model_types = SH_WORDS("sarvam_moe"),
    .architectures = SH_WORDS("SarvamMoEForCausalLM", "Glm4MoeForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 8e6f), .n_kv_head = 4, .d_head = 64,
              .mix = {.n = 128, .used = 6, .width = 1024, MIX},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_sarvam_moe,
    .only = SH_WORDS("use_bias=false", "score_function=\"sigmoid\"", "moe_router_enable_expert_bias=true"),
    .knows = KNOWS, .shape = shape, .finish = sh_config_classic_rope};

static int shape_latent(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_latent_shape(a, c, e) || read_mixture(a, c, e))
        return -1;
    a->rotary_share = 1;
    return sh_config_real(c, "partial_rotary_factor", 1, &a->rotary_share, e) || sh_config_turns_whole(a, c, e)
               ? -1 : 0;
}

const struct sh_family sh_family_sarvam_mla = {
    .special = "latent attention, experts by corrected sigmoids",
    .name = "sarvam_mla", .model_types = SH_WORDS("sarvam_mla"),
    .architectures = SH_WORDS("SarvamMLAForCausalLM", "DeepseekV3ForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .latent = {.rank = 512, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .mix = {.n = 128, .used = 8, .width = 2048, MIX},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION},
    .keys = sh_deepseek_keys, .params = sh_deepseek_params, .gguf = &sh_gguf_deepseek,
    .only = SH_WORDS("moe_layer_freq=1", "mlp_bias=false"), .knows = KNOWS, .shape = shape_latent,
    .finish = sh_latent_finish};
