/* SPDX-License-Identifier: Apache-2.0 */
/* MiMo-V2-Flash (Xiaomi, 2025): experts chosen by sigmoids with a correction, values narrower than keys, and layers
 * with a window, which have sinks and twice as many KV heads. */
#include <math.h>
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_COUNT_KEY(d_value, 1e5, "v_head_dim"), SH_REAL_KEY(value_scale, 1e6, "attention_value_scale"),
    SH_DEEPSEEK_MIXTURE, SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS,
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV_VALUES, MODEL, SH_HAS_BIAS, 0),
    SH_MATRIX(O_W, SH_LAYER "self_attn.o_proj.weight", MODEL, VALUES, 0),
    SH_VECTOR(SINKS, SH_LAYER "self_attn.attention_sink_bias", HEADS, 0, 0),
    SH_VECTOR(SINKS, SH_LAYER "self_attn.sinks", HEADS, 0, 0), SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, {.name = NULL}};

/* All tokens are seen by the first layer and each sixth. */
static int has_window(int layer, int period)
{
    return layer && (layer + 1) % period;
}

/* Checks keys that repeat what other keys say. */
static int check_counts(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct { const char *key; int n; } same[] = {
        {"swa_num_attention_heads", a->n_head}, {"swa_head_dim", a->d_head}, {"swa_v_head_dim", a->d_value},
        {"swa_num_key_value_heads", a->n_kv_head}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int n = same[i].n;
        char expected[32];
        if (sh_config_count(c, same[i].key, 100000000, &n, e))
            return -1;
        snprintf(expected, sizeof expected, "%d", same[i].n);
        if (n != same[i].n)
            return sh_config_refuse(c, same[i].key, expected, e);
    }
    return 0;
}

/* Checks lists that have 1 for each layer with a window, or with experts. */
static int check_lists(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const lists[] = {"hybrid_layer_pattern", "moe_layer_freq"};
    for (int k = 0; k < 2; k++) {
        int n = sh_config_length(c, lists[k]);
        if (n && n != a->n_layer)
            return sh_config_refuse(c, lists[k], "a list with 0 or 1 for each layer", e);
        for (int i = 0; i < n; i++) {
            char key[48];
            int is = -1, should = k ? (sh_arch_flags(a, i) & SH_EXPERT_LAYER) != 0 : sh_arch_window(a, i) > 0;
            snprintf(key, sizeof key, "%s.%d", lists[k], i);
            if (sh_config_at_least(c, key, 0, 1, &is, e))
                return -1;
            if (is != should)
                return sh_config_refuse(c, key, k ? "what mlp_layer_types says of the layer"
                                                  : "what layer_types says of the layer", e);
        }
    }
    return 0;
}

/* Layers with a window have twice as many KV heads. */
static int read_heads(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_layer_sizes *sizes = sh_config_sizes(c, a);
    int locals = 0, few = a->n_kv_head;
    if (a->d_value > a->d_head)
        return sh_config_refuse(c, "v_head_dim", "at most head_dim", e);
    for (int i = 0; i < a->n_layer; i++) {
        int is_local = sh_arch_window(a, i) > 0;
        locals += is_local;
        sizes[i].n_kv_head = is_local ? 2 * few : few;
    }
    if (a->n_head % few || (locals && a->n_head % (2 * few)))
        return sh_config_refuse(c, "num_key_value_heads", "a divisor of num_attention_heads, and so twice of it", e);
    a->n_kv_head = locals ? 2 * few : few;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int more = 0;
    if (sh_config_window(c, 129, a, e) || sh_config_at_least(c, "sliding_window_size", 0, 100000000, &more, e))
        return -1;
    a->window = sh_config_has(c, "sliding_window_size") && !sh_config_is_null(c, "sliding_window_size") ? more + 1
                                                                                                         : a->window;
    if (!a->window)
        return sh_config_refuse(c, "sliding_window", "a number of tokens", e);
    a->n_rot = a->d_head > 1 ? a->d_head / 2 * 2 : 0;               /* finish knows better               */
    return sh_config_windows(c, has_window, 6, a, e) || sh_mixture_listed(a, c, 1, e) || read_heads(a, c, e) ||
           check_counts(a, c, e) || check_lists(a, c, e) ? -1 : 0;
}

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(sinks, 2), {.json = {NULL}}};

/* A file without rope_parameters means those of the published model; other keys of the rotation must say the same. */
static int check_rope(const struct sh_config *c, struct sh_err *e)
{
    static const char *const kinds[] = {"full_attention", "sliding_attention"};
    static const struct { const char *key; float value; } flat[] = {
        {"rope_theta", 5e6f}, {"swa_rope_theta", 1e4f}, {"partial_rotary_factor", 0.334f}};
    for (int i = 0; i < 2; i++) {
        char type[80], share[80];
        snprintf(type, sizeof type, "rope_parameters.%s.rope_type", kinds[i]);
        snprintf(share, sizeof share, "rope_parameters.%s.partial_rotary_factor", kinds[i]);
        if (!sh_config_is(c, type, "\"default\"") && !sh_config_is_set(c, share))
            return sh_config_refuse(c, share, "the rotated share of a head", e);
    }
    for (size_t i = 0; i < sizeof flat / sizeof *flat && !sh_config_is_filled(c, "rope_parameters"); i++) {
        float x = flat[i].value;
        char expected[80];
        if (sh_config_real(c, flat[i].key, 1e12, &x, e))
            return -1;
        snprintf(expected, sizeof expected, "%g, or other values in rope_parameters", (double)flat[i].value);
        if (fabsf(x - flat[i].value) > 1e-6f * flat[i].value)
            return sh_config_refuse(c, flat[i].key, expected, e);
    }
    return 0;
}

/* transformers reads rms_norm_eps alone. The published file has this key instead, with that one's default. */
static int check_epsilon(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float x = a->norm_eps;
    char expected[40];
    if (sh_config_real(c, "layernorm_epsilon", 1, &x, e))
        return -1;
    snprintf(expected, sizeof expected, "%g, as rms_norm_eps", (double)a->norm_eps);
    return fabsf(x - a->norm_eps) > 1e-6f * a->norm_eps ? sh_config_refuse(c, "layernorm_epsilon", expected, e) : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_null(c, "attention_value_scale"))
        a->value_scale = 1;
    a->n_rot = (int)(a->d_head * 0.334);
    if (check_epsilon(a, c, e) || check_rope(c, e) || sh_config_ropes_by_kind(a, c, e))
        return -1;
    return a->n_rot < 2 || a->n_rot % 2 || a->local_n_rot < 2 || a->local_n_rot % 2
               ? sh_config_refuse(c, "head_dim", "a width whose rotated share is an even number", e) : 0;
}

const struct sh_family sh_family_mimo_v2 = {
    .special = "windows with sinks and more KV heads, values narrower than keys, experts by corrected sigmoids",
    .name = "mimo_v2", .model_types = SH_WORDS("mimo_v2_flash"),
    .architectures = SH_WORDS("MiMoV2FlashForCausalLM", "MiMoV2FlashModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 5e6f), .local_rope = {.base = 1e4f}, .n_kv_head = 4, .d_head = 192,
              .d_value = 128, .value_scale = 0.707f, .local_sinks = 1,
              .mix = {.n = 256, .used = 8, .width = 2048, .groups = 1, .used_groups = 1, .scale = 1,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_HAS_SINKS | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_mimo_v2,
    .only = SH_WORDS("add_swa_attention_sink_bias=true", "add_full_attention_sink_bias=false",
                     "attention_projection_layout=\"split\"", "scoring_func=\"sigmoid\"", "topk_method=\"noaux_tc\"",
                     "n_shared_experts=null", "first_k_dense_replace=1", "use_qk_norm=false", "mlp_bias=false"),
    .knows = " sliding_window layer_types mlp_layer_types moe_layer_freq attention_chunk_size "
             "num_nextn_predict_layers layernorm_epsilon ",
    .shape = shape, .finish = finish, .facts = facts};
