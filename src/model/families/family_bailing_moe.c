/* SPDX-License-Identifier: Apache-2.0 */
/* Ling-lite and -plus, Ring (Ant Group, 2025), whose code comes with their files: experts chosen by a softmax, and
 * shared ones; q, k and v in one tensor; an output head whose columns are divided by their lengths (norm_head). Ling
 * 2.0 and Ring 2.0 have the same model type in some files, but sigmoids, groups, a corrected choice of experts, norms
 * of queries and keys, and a plain head. GGUF files of version 2.0 are of the family sarvam_moe; those of the older
 * models contain the divided head. */
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "partial_rotary_factor"), SH_DEEPSEEK_MIXTURE, {.json = {NULL}}};

static int has_architecture(const struct sh_config *c, const char *name)
{
    const char *first = NULL;
    struct sh_err ignored;
    return !sh_config_word(c, "architectures.0", &first, &ignored) && first && !strcmp(first, name);
}

static int is_second(const struct sh_config *c)
{
    return has_architecture(c, "BailingMoeV2ForCausalLM") || !sh_config_is(c, "model_type", "\"bailing_moe\"");
}

/* Keys that the code of the first models does not read are ignored for these. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int second = is_second(c), biased = 0, out = 1, normed = 0;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_flag(c, "use_qkv_bias", &biased, e) || sh_config_flag(c, "use_bias", &out, e) ||
        (second && sh_config_flag(c, "use_qk_norm", &normed, e)))
        return -1;
    if (out)                                /* no published file has it: programs differ in which products have one */
        return sh_config_refuse(c, "use_bias", "false", e);
    a->flags |= (biased ? SH_HAS_BIAS : 0u) | (normed ? SH_HAS_QK_NORM : 0u);
    a->flags |= second ? SH_HAS_CORRECTION : 0u;
    a->mix.route = second ? SH_ROUTE_SIGMOID : SH_ROUTE_SOFTMAX;
    if (!second) {
        a->mix.groups = a->mix.used_groups = 0;
        a->rotary_share = 1;
    }
    if (sh_mixture_shared(a, c, "num_shared_experts", 0, e) || sh_mixture_after(a, c, "first_k_dense_replace", 0, e))
        return -1;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int second = is_second(c), normed = 0;
    if (sh_config_flag(c, "norm_head", &normed, e))
        return -1;
    if (second && normed)
        return sh_config_refuse(c, "norm_head", "false for the second version", e);
    if (normed && !sh_config_is_gguf(c)) {
        if (a->flags & SH_TIED_HEAD)
            return sh_config_refuse(c, "tie_word_embeddings", "false with norm_head", e);
        a->head_norm = SH_HEAD_COLUMNS;
    }
    if (!second && !sh_config_is(c, "score_function", "\"softmax\""))
        return sh_config_refuse(c, "score_function", "\"softmax\" for the first version", e);
    if (second && !sh_config_is(c, "score_function", "\"sigmoid\""))
        return sh_config_refuse(c, "score_function", "\"sigmoid\"", e);
    if (!second)
        a->mix.scale = 1;
    sh_mixture_leave_one(a);
    return sh_config_classic_rope(a, c, e);
}

/* The code of some files reads a window, but none is published with one in use. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)f;
    return sh_config_check_only(c, "use_sliding_window=false", e);
}

#define A SH_LAYER "attention."
#define QKV A "query_key_value"
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "word_embeddings.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LINEAR(Q, QKV, Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, QKV, KV, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(V, QKV, KV, MODEL, SH_HAS_BIAS, 0),
    SH_MATRIX(O_W, A "dense.weight", MODEL, Q, 0),
    SH_VECTOR(Q_NORM_W, A "query_layernorm.weight", HEAD, SH_HAS_QK_NORM, 0),
    SH_VECTOR(K_NORM_W, A "key_layernorm.weight", HEAD, SH_HAS_QK_NORM, 0), SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"),
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "mlp.gate.expert_bias", .cols = SH_DIM_EXPERTS,
     .needs = SH_EXPERT_LAYER | SH_HAS_CORRECTION}, SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

const struct sh_family sh_family_bailing_moe = {
    .special = "experts next to shared ones, q, k and v in one tensor, a normed head",
    .name = "bailing_moe", .model_types = SH_WORDS("bailing_moe", "bailing_moe_v2"),
    .architectures = SH_WORDS("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .mix = {.groups = 8, .used_groups = 4, .scale = 2.5f, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_bailing_moe,
    .only = SH_WORDS("multi_gate=false", "moe_router_enable_expert_bias=true", "use_sliding_window=false"),
    .knows = " first_k_dense_replace num_nextn_predict_layers num_shared_experts sliding_window use_sliding_window "
             "max_window_layers ", .shape = shape, .finish = finish, .count = count};
