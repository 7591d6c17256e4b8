/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMax-M3 (2026), also the text part of the model with pictures: experts chosen by sigmoids with a correction,
 * clamped SwiGLU, norms of queries and keys per head. In most layers an index chooses blocks of keys; the model runs on
 * texts so short that it chooses all. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(knob[0], 1e6, "swiglu_limit"), SH_REAL_KEY(knob[1], 1e6, "swiglu_alpha"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "intermediate_size"), SH_COUNT_KEY(mix.shared_width, 1e8, "shared_intermediate_size"),
    SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor"), {.json = {NULL}}};

#define FUSED "mlp.gate_up_proj"
#define SHARED_FUSED "mlp.shared_experts.gate_up_proj.weight"
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_DENSE(GATE, FUSED, FF, MODEL), SH_DENSE(UP, FUSED, FF, MODEL), SH_ROUTER("block_sparse_moe.gate.weight"),
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("block_sparse_moe.e_score_correction_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_MIXTRAL_EXPERTS,
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_SHARED("block_sparse_moe.shared_experts"),
    SH_SHARED_PART(GATE, SHARED_FUSED, SHARED_FF, MODEL), SH_SHARED_PART(UP, SHARED_FUSED, SHARED_FF, MODEL),
    SH_SHARED_PART(DOWN, "mlp.shared_experts.down_proj.weight", MODEL, SHARED_FF), {.name = NULL}};

/* Entry i of a list of words, of 1 and 2, or, without it, of one of numbers, 0 or not; without both, `usual`. */
static int read_layer(const struct sh_config *c, const char *list, const struct sh_word *words, const char *numbers,
                      int i, int usual, int *out, struct sh_err *e)
{
    char key[64];
    int n = -1;
    *out = usual;
    if (sh_config_is_set(c, list)) {
        int bad = sh_config_choice_at(c, list, i, words, &n, e);
        *out = n == 2;
        return bad;
    }
    if (!sh_config_has(c, numbers) || sh_config_is_null(c, numbers))
        return 0;
    snprintf(key, sizeof key, "%s.%d", numbers, i);
    if (sh_config_at_least(c, key, 0, 100000, &n, e))
        return -1;
    *out = n > 0;
    return n < 0 ? sh_config_refuse(c, key, "0 or 1 for each layer", e) : 0;
}

static int has_index(const struct sh_config *c, int i, int *out, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full_attention", 1}, {"minimax_m3_sparse", 2}, {NULL, 0}};
    return read_layer(c, "layer_types", words, "sparse_attention_config.sparse_attention_freq", i, 0, out, e);
}

static int has_experts(const struct sh_config *c, int i, int *out, struct sh_err *e)
{
    static const struct sh_word words[] = {{"dense", 1}, {"sparse", 2}, {NULL, 0}};
    return read_layer(c, "mlp_layer_types", words, "moe_layer_freq", i, 1, out, e);
}

/* Checks a key that repeats what another one says. */
static int check_same(const struct sh_config *c, const char *key, int value, struct sh_err *e)
{
    int n = value;
    char expected[32];
    snprintf(expected, sizeof expected, "%d", value);
    if (sh_config_at_least(c, key, 0, 100000000, &n, e))
        return -1;
    return n != value ? sh_config_refuse(c, key, expected, e) : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int first = -1, is = 0;
    a->d_ff = 12288;
    if (sh_config_count(c, "dense_intermediate_size", 100000000, &a->d_ff, e) ||
        sh_config_at_least(c, "first_k_dense_replace", 0, 100000, &first, e) ||
        check_same(c, "moe_intermediate_size", a->mix.width, e) || check_same(c, "n_shared_experts", 1, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        if (has_experts(c, i, &is, e))
            return -1;
        if (first >= 0 && is != (i >= first))
            return sh_config_refuse(c, "first_k_dense_replace", "what mlp_layer_types or moe_layer_freq says", e);
        if (!is)
            sh_arch_keep_dense(a, i);
        if (has_index(c, i, &is, e))
            return -1;
    }
    return 0;
}

/* Numbers of the index; those of sparse_attention_config come first. */
static int read_index(const struct sh_config *c, const char *first, const char *key, int *out, struct sh_err *e)
{
    char inner[80];
    snprintf(inner, sizeof inner, "sparse_attention_config.%s", first);
    return sh_config_count(c, sh_config_has(c, inner) ? inner : key, 100000000, out, e);
}

/* The number of tokens in the blocks that the index chooses. */
static int read_chosen(const struct sh_config *c, int *out, struct sh_err *e)
{
    int size = 128, blocks = 16;
    if (read_index(c, "sparse_block_size", "index_block_size", &size, e) ||
        read_index(c, "sparse_topk_blocks", "index_topk_blocks", &blocks, e))
        return -1;
    long long all = (long long)size * blocks;
    *out = all < INT_MAX ? (int)all : INT_MAX;
    return 0;
}

/* rotary_dim only repeats another key: transformers rotates by partial_rotary_factor or, without it, whole heads. */
static int read_share(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *own = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling.partial_rotary_factor"
                                                             : "rope_parameters.partial_rotary_factor";
    float share = 1;
    int said = 0;
    if (sh_config_real(c, "partial_rotary_factor", 1, &share, e) || sh_config_real(c, own, 1, &share, e) ||
        sh_config_at_least(c, "rotary_dim", 0, 100000, &said, e))
        return -1;
    a->n_rot = (int)((float)a->d_head * share);
    if (a->n_rot < 2 || a->n_rot % 2)
        return sh_config_refuse(c, "partial_rotary_factor", "a share of head_dim that is an even number, at least 2",
                                e);
    if (said && said <= a->d_head && said != a->n_rot)
        return sh_config_refuse(c, "rotary_dim", "partial_rotary_factor times head_dim", e);
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word acts[] = {{"silu", 0}, {"swigluoai", 1}, {NULL, 0}};
    int act = 0, is = 0, any = 0, chosen = 0;
    if (sh_config_choice(c, "hidden_act", acts, &act, e) || read_share(a, c, e) || sh_config_classic_rope(a, c, e) ||
        read_chosen(c, &chosen, e))
        return -1;
    for (int i = 0; i < a->n_layer && !any; i++) {
        if (has_index(c, i, &is, e))
            return -1;
        any = is;
    }
    a->max_pos = any && chosen < a->max_pos ? chosen : a->max_pos;
    return 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int is = 0;
    f->index_dim = 128;
    f->index_heads = 4;
    if (read_chosen(c, &f->index_topk, e) || read_index(c, "sparse_index_dim", "index_head_dim", &f->index_dim, e) ||
        read_index(c, "sparse_num_index_heads", "index_n_heads", &f->index_heads, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    for (int i = 0; i < f->layers; i++) {
        if (has_index(c, i, &is, e))
            return -1;
        f->pattern[i] = is ? 'B' : 'G';
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

const struct sh_family sh_family_minimax_m3 = {
    .special = "experts by corrected sigmoids, clamped SwiGLU, blocks of keys that an index chooses",
    .name = "minimax_m3", .model_types = SH_WORDS("minimax_m3_vl_text", "minimax_m3_vl", "minimax_m3"),
    .architectures = SH_WORDS("MiniMaxM3VLForCausalLM", "MiniMaxM3ForCausalLM",
                              "MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM",
                              "MiniMaxM3VLModel", "MiniMaxM3VLTextModel"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_CLAMPED, .knob = {7, 1.702f}, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 524288, .rotary_share = 1, .rope = {.base = 5e6f},
              .n_kv_head = 4, .d_head = 128,
              .mix = {.n = 128, .used = 4, .width = 3072, .shared_width = 3072, .scale = 2, .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_NORM_PLUS_ONE | SH_MIX_NORMED},
    .keys = keys, .params = params,
    .only = SH_WORDS("attention_bias=false", "mlp_bias=false", "use_qk_norm=true", "qk_norm_type=\"per_head\"",
                     "use_gemma_norm=true", "use_routing_bias=true", "scoring_func=\"sigmoid\"",
                     "attention_output_gate=false"),
    .knows = " layer_types mlp_layer_types moe_layer_freq sparse_attention_config index_head_dim "
             "first_k_dense_replace num_nextn_predict_layers ",
    .shape = shape, .finish = finish, .count = count};
