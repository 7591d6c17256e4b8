/* SPDX-License-Identifier: Apache-2.0 */
/* The text part of Mistral Large 4 (Mistral AI, 2026): latent attention to the tokens that an index chooses, which runs
 * as far as it chooses all; experts as in Mistral Small 4. Queries grow with the logarithm of their position as each
 * head has learned it (head_temper.c); factors of the rotary frequencies are learned, too. In every fourth layer
 * nothing rotates, and keys have no rotary part. Published files have names of their own. */
#include <math.h>
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(latent.rank, 1e6, "kv_lora_rank"), SH_COUNT_KEY(latent.d_rope, 1e5, "qk_rope_head_dim"),
    SH_COUNT_KEY(latent.d_nope, 1e5, "qk_nope_head_dim"), SH_COUNT_KEY(latent.d_v, 1e5, "v_head_dim"),
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "n_routed_experts", "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"),
    SH_COUNT_KEY(mix.groups, 1e5, "n_group"), SH_COUNT_KEY(mix.used_groups, 1e5, "topk_group"),
    SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor"), {.json = {NULL}}};

#define ATTENTION(stem, q, kv_a, kv_a_norm, kv_b, out) \
    SH_MATRIX(Q_B_W, stem q ".weight", Q_B, MODEL, 0), SH_MATRIX(KV_A_W, stem kv_a ".weight", KV_A, MODEL, 0), \
    SH_NORM_WEIGHT(KV_A_NORM, stem kv_a_norm ".weight", KV_RANK, 0), \
    SH_MATRIX(KV_B_W, stem kv_b ".weight", KV_B, KV_RANK, 0), SH_MATRIX(O_W, stem out ".weight", MODEL, VALUES, 0), \
    SH_VECTOR(KV_A_B, stem kv_a ".bias", KV_A, SH_HAS_BIAS, 0), \
    SH_VECTOR(O_B, stem out ".bias", MODEL, SH_HAS_OUT_BIAS, 0)
#define FEED(stem, gate, up, down) \
    SH_DENSE(GATE, stem gate, FF, MODEL), SH_DENSE(UP, stem up, FF, MODEL), SH_DENSE(DOWN, stem down, MODEL, FF)
#define ALWAYS(stem, gate, up, down) \
    SH_SHARED_PART(GATE, stem gate ".weight", SHARED_FF, MODEL), \
    SH_SHARED_PART(UP, stem up ".weight", SHARED_FF, MODEL), SH_SHARED_PART(DOWN, stem down ".weight", MODEL, SHARED_FF)

/* As transformers has them in memory, then as published. */
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_MATRIX(TOK_EMBED, "tok_embeddings.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("output.weight"),
    SH_LLAMA_FINAL_NORM,
    SH_VECTOR(ROPE_POWERS, "rotary_emb.alpha", ROPE_PAIRS, 0, 0),
    SH_VECTOR(ROPE_POWERS, "lerope.alpha", ROPE_PAIRS, 0, 0),
    SH_LLAMA_IN_NORMS, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "attention_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "ffn_norm.weight", MODEL, 0),
    ATTENTION(SH_LAYER "self_attn.", "q_proj", "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj"),
    ATTENTION(SH_LAYER "attention.", "wq", "wkv_a_with_mqa", "kv_a_norm", "wkv_b", "wo"),
    SH_VECTOR(QUERY_LOG, SH_LAYER "self_attn.softmax_scaling.scale", HEADS, 0, 0),
    SH_VECTOR(QUERY_LOG, SH_LAYER "attention.ssmax_scaling.s", HEADS, 0, 0),
    SH_VECTOR(QUERY_KEPT, SH_LAYER "self_attn.softmax_scaling.bias", HEADS, 0, 0),
    SH_VECTOR(QUERY_KEPT, SH_LAYER "attention.ssmax_scaling.b", HEADS, 0, 0),
    SH_LLAMA_FEED, FEED("feed_forward.", "w1", "w3", "w2"), SH_ROUTER("mlp.gate.weight"), SH_ROUTER("gate.weight"),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS,
    SH_EXPERTS("experts", "w1", "w3", "w2"), SH_SHARED("mlp.shared_experts"),
    ALWAYS("shared_experts.", "w1", "w3", "w2"), {.name = NULL}};

/* Layers that do not rotate: listed, or one of so many. Their heads have other widths. */
static int read_still(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "no_rope_layers";
    int any = 0;
    if (!sh_config_has(c, "no_rope_layers.0") && sh_config_has(c, list) && !sh_config_is_null(c, list))
        return sh_config_refuse(c, list, "a list with 0 or 1 for each layer", e);
    if (sh_config_still_layers(c, a, e))
        return -1;
    for (int layer = 0; layer < a->n_layer; layer++)
        any |= !sh_arch_turns(a, layer);
    struct sh_layer_sizes *s = any ? sh_config_sizes(c, a) : NULL;
    for (int layer = 0; layer < a->n_layer && any; layer++)
        s[layer].d_head = sh_arch_turns(a, layer) ? 0 : a->latent.rank;
    return any ? sh_config_take_largest(c, list, a, e) : 0;
}

/* The layers whose latents each layer attends to. */
static int check_sources(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "kv_source_layers";
    if (!sh_config_has(c, list) || sh_config_is_null(c, list))
        return 0;
    if (sh_config_length(c, list) != a->n_layer)
        return sh_config_refuse(c, list, "a list with a number for each layer", e);
    for (int layer = 0; layer < a->n_layer; layer++) {
        char key[40], expected[80];
        int source = -1;
        snprintf(key, sizeof key, "%s.%d", list, layer);
        snprintf(expected, sizeof expected, "%d: layers that share keys and values are not supported", layer);
        if (sh_config_at_least(c, key, 0, a->n_layer, &source, e))
            return -1;
        if (source != layer)
            return sh_config_refuse(c, key, expected, e);
    }
    return 0;
}

/* All layers attend by an index, their own or that of a layer before. */
static int check_index(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"indexed_attention", 1}, {NULL, 0}};
    struct sh_kv_facts f = {.layers = a->n_layer};
    static const char *const lists[] = {"layer_types", "indexer_types"};
    int kind, listed = sh_config_has(c, "indexer_types.0");
    for (int i = 0; i < 2; i++)
        if (sh_config_has(c, lists[i]) && !sh_config_is_null(c, lists[i]) && sh_config_length(c, lists[i]) < 1)
            return sh_config_refuse(c, lists[i], "a list with a word for each layer", e);
    for (int layer = 0; layer < a->n_layer && sh_config_has(c, "layer_types.0"); layer++)
        if (sh_config_choice_at(c, "layer_types", layer, kinds, &kind, e))
            return -1;
    if (sh_index_pattern(c, &f, e))
        return -1;
    if (f.pattern[0] == 'I')
        return 0;
    return sh_config_refuse(c, listed ? "indexer_types.0" : sh_config_is_set(c, "index_topk_pattern")
                                                                ? "index_topk_pattern" : "index_skip_topk_offset",
                            "an index in the first layer", e);
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->latent.eps = a->norm_eps;
    return sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) || read_still(a, c, e) || check_sources(a, c, e) || check_index(a, c, e)
               ? -1 : 0;
}

/* transformers sharpens the scores of all scaled kinds by mscale_all_dim, here only those of YaRN are. */
static int check_kind(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *object = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    char key[64];
    float weight = 0;
    snprintf(key, sizeof key, "%s.mscale_all_dim", object);
    if (sh_config_real(c, key, 1e6, &weight, e))
        return -1;
    if (weight > 0 && a->rope.kind != SH_ROPE_YARN && a->rope.kind != SH_ROPE_PLAIN)
        return sh_config_refuse(c, key, "none, unless rope_type is \"yarn\"", e);
    snprintf(key, sizeof key, "%s.%s", object, sh_config_has(c, "rope_scaling.type") ? "type" : "rope_type");
    return a->rope.kind != SH_ROPE_LONG && a->rope.kind != SH_ROPE_PROPORTIONAL
               ? 0 : sh_config_refuse(c, key, "\"yarn\", \"default\", \"linear\", \"dynamic\" or \"llama3\"", e);
}

/* A file that says nothing about the rotation means YaRN from 512 tokens on, whatever its rope_theta says. */
static int read_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const shares[] = {"partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                                         "rope_scaling.partial_rotary_factor"};
    if (a->latent.d_rope > 2 * SH_ROPE_PAIRS)
        return sh_config_refuse(c, "qk_rope_head_dim", "at most 512", e);
    for (int i = 0; i < 3; i++)
        if (sh_config_has(c, shares[i]) && !sh_config_is_null(c, shares[i]) && !sh_config_is(c, shares[i], "1.0") &&
            !sh_config_is(c, shares[i], "1"))
            return sh_config_refuse(c, shares[i], "1", e);
    if (sh_indexed_finish(a, c, e))
        return -1;
    if (sh_config_says_rope(c))
        return check_kind(a, c, e);
    a->rope = (struct sh_rope){.kind = SH_ROPE_YARN, .base = 10000, .factor = 2048, .original = 512, .fast = 32,
                               .slow = 1, .attention = 1, .is_rough = 1};
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char cap[] = "final_logit_softcapping";
    if (read_rope(a, c, e) || sh_config_real(c, cap, 1e6, &a->head_softcap, e))
        return -1;
    if (sh_config_is_null(c, cap) || !(a->head_softcap > 0))
        return sh_config_refuse(c, cap, "a number greater than 0", e);
    a->flags |= SH_IN_PAIRS;
    a->tempers_heads = 1;
    a->temper = 1;
    return 0;
}

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 32, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 2048, "index_topk"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->ends_more = f->rope_dim / 2;
    return sh_index_pattern(c, f, e);
}

const struct sh_family sh_family_mistral_large4 = {
    .special = "latent attention to the tokens that an index chooses, temperature by head and position",
    .name = "mistral_large4", .model_types = SH_WORDS("mistral_large4_text"),
    .architectures = SH_WORDS("MistralLarge4ForConditionalGeneration", "MistralLarge4TextModel"),
    .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 1048576, .rotary_share = 1, .rope = {.base = 10000}, .head_softcap = 30,
              .latent = {.rank = 512, .d_rope = 64, .d_nope = 64, .d_v = 128},
              .mix = {.n = 128, .used = 4, .width = 6144, .scale = 1, .groups = 1, .used_groups = 1,
                      .route = SH_ROUTE_SOFTMAX, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = keys, .params = params,
    .only = SH_WORDS("rope_interleave=true", "norm_topk_prob=true", "q_lora_rank=null", "mlp_bias=false",
                     "moe_layer_freq=1", "scoring_func=\"softmax\""),
    .facts = facts,
    .knows = " layer_types mlp_layer_types num_local_experts num_experts first_k_dense_replace indexer_types "
             "no_rope_layers index_topk_freq index_topk_pattern index_skip_topk_offset moe_layer_freq ",
    .shape = shape, .finish = finish, .count = count};
