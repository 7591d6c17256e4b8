/* SPDX-License-Identifier: Apache-2.0 */
/* Step-3.5-Flash and the text part of Step-3.7-Flash (StepFun, 2026): a gate for each head; layers with a window have
 * rotary parameters of their own; experts chosen by sigmoids with a correction, and a shared one; limits of the
 * feed-forward factors in some layers. In the published models, layers with a window have more query heads than
 * others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_COUNT_KEY(n_kv_head, 1e5, "num_key_value_heads", "num_attention_groups"),
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts", "moe_num_experts", "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok", "moe_top_k"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"),
    SH_COUNT_KEY(mix.shared_width, 1e8, "share_expert_dim", "share_expert_dims"),
    SH_REAL_KEY(mix.scale, 1e6, "moe_router_scaling_factor"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_MATRIX(ATTN_GATE_W, SH_LAYER "self_attn.g_proj.weight", GATES, MODEL, 0), SH_LLAMA_FEED,
    SH_ROUTER("moe.gate.weight"), SH_ROUTER("mlp.gate.weight"), SH_CHOICE("moe.router_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_EXPERT_PART(GATE, "moe.gate_proj.weight", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "moe.up_proj.weight", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "moe.down_proj.weight", MODEL, EXPERT_FF, 0),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_SHARED("share_expert"),
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

/* ---- layers ---- */

/* Query heads: those of layers with a window by a key of their own, or of all layers by per_layer_config. */
static int read_heads(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char other[] = "attention_other_setting.num_attention_heads", own[] = "num_sliding_attention_heads";
    int listed = sh_config_has(c, "per_layer_config") && !sh_config_is_null(c, "per_layer_config");
    int local = a->n_head;
    const char *by = listed ? "per_layer_config" : sh_config_is_set(c, own) ? own : other;
    if (sh_config_is_gguf(c))
        return sh_config_read_sizes(c, a, 0, e);
    struct sh_layer_sizes *sizes = sh_config_sizes(c, a);
    if (sh_config_count(c, sh_config_is_set(c, own) ? own : other, 100000, &local, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        char key[64];
        sizes[i].n_head = sh_arch_window(a, i) && !listed ? local : a->n_head;
        snprintf(key, sizeof key, "per_layer_config.%d", i);
        for (int k = 0; sh_config_key_at(c, key, k); k++)
            if (strcmp(sh_config_key_at(c, key, k), "num_attention_heads"))
                return sh_config_refuse(c, key, "num_attention_heads alone", e);
        snprintf(key, sizeof key, "per_layer_config.%d.num_attention_heads", i);
        if (sh_config_count(c, key, 100000, &sizes[i].n_head, e))
            return -1;
    }
    return sh_config_take_largest(c, by, a, e);
}

/* Reads the layers with experts from a list, or from numbers separated by commas; the bits of these layers are set. */
static int read_enum(const struct sh_config *c, int n_layer, uint64_t *at, struct sh_err *e)
{
    static const char key[] = "moe_layers_enum";
    const char *words = NULL;
    int n = sh_config_length(c, key), bad = 0;
    if (n < 0 && sh_config_word(c, key, &words, e))
        return -1;
    for (int i = 0; i < n; i++) {
        char one[40];
        int layer = -1;
        snprintf(one, sizeof one, "%s.%d", key, i);
        if (sh_config_at_least(c, one, 0, 100000, &layer, e))
            return -1;
        if (layer >= 0 && layer < n_layer)
            at[layer / 64] |= (uint64_t)1 << layer % 64;
    }
    while (words && *words && !bad) {
        char *end;
        long layer = strtol(words, &end, 10);
        end += strspn(end, " ");
        bad = end == words || (*end && *end != ',');
        if (!bad && layer >= 0 && layer < n_layer)
            at[layer / 64] |= (uint64_t)1 << layer % 64;
        words = *end ? end + 1 : end;
    }
    return bad ? sh_config_refuse(c, key, "numbers of layers between commas", e) : 0;
}

static int read_mixtures(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    uint64_t at[SH_MOST_LAYERS / 64] = {0};
    int listed = sh_config_has(c, "moe_layers_enum") && !sh_config_is_null(c, "moe_layers_enum"), first = 3;
    if (sh_config_at_least(c, "first_k_dense_replace", 0, 100000, &first, e))
        return -1;
    if (first != 3)
        return sh_config_refuse(c, "first_k_dense_replace", "3, or a list in mlp_layer_types instead", e);
    if (sh_config_is_set(c, "mlp_layer_types"))
        return sh_mixture_listed(a, c, 0, e);
    if (listed && read_enum(c, a->n_layer, at, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        if (listed ? !(at[i / 64] >> i % 64 & 1) : i < 3)
            sh_arch_keep_dense(a, i);
    return 0;
}

static int no_layer(int layer, int number)
{
    (void)layer;
    (void)number;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char heads[] = "attention_other_setting.num_attention_groups";
    static const char width[] = "attention_other_setting.head_dim";
    int kv = a->n_kv_head, d = a->d_head, given = 0;
    if (sh_config_window(c, 0, a, e))
        return -1;
    given = a->window;
    a->window = given ? given : 1;              /* until the list has been read                       */
    if (sh_config_windows(c, no_layer, 0, a, e))
        return -1;
    for (int i = 0; i < a->n_layer && !given; i++)
        if (sh_arch_window(a, i))
            return sh_config_refuse(c, "sliding_window", "a number of tokens", e);
    a->window = given;
    if (sh_config_count(c, heads, 100000, &kv, e) || sh_config_count(c, width, 100000, &d, e))
        return -1;
    if (kv != a->n_kv_head || d != a->d_head)
        return sh_config_refuse(c, kv != a->n_kv_head ? heads : width, "the same as in other layers", e);
    return read_mixtures(a, c, e) || read_heads(a, c, e) ? -1 : 0;
}

/* ---- what only the forward pass needs ---- */

/* The first files have a number for each layer, or one for all; here there is one for each kind of layer, with a window
 * or without. */
static int read_by_kind(const struct sh_arch *a, const struct sh_config *c, const char *list, double most, float of[2],
                        struct sh_err *e)
{
    int n = sh_config_length(c, list), seen[2] = {0, 0};
    if (n < 0) {
        if (sh_config_real(c, list, most, &of[0], e))
            return -1;
        of[1] = of[0];
        return 0;
    }
    for (int i = 0; i < a->n_layer && n; i++) {
        char key[64];
        int kind = !sh_arch_window(a, i);
        float x = -1;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_real(c, key, most, &x, e))
            return -1;
        if (x < 0 || (seen[kind] && (x < of[kind] || x > of[kind])))
            return sh_config_refuse(c, key, "one number for all layers with a window, and one for all others", e);
        of[kind] = x;
        seen[kind] = 1;
    }
    return 0;
}

static int finish_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_scaling", NULL};
    float base[2] = {1e4f, 1e4f}, share[2] = {1, 1};
    int n_rot[2];
    if (sh_config_is_set(c, "partial_rotary_factor"))
        return sh_config_refuse(c, "partial_rotary_factor", "nothing: rope_parameters has a share for each kind of "
                                "layers", e);
    if (sh_config_is_filled(c, "rope_parameters.full_attention") ||
        sh_config_is_filled(c, "rope_parameters.sliding_attention"))
        return sh_config_ropes_by_kind(a, c, e);
    if (sh_config_is_filled(c, "rope_parameters"))
        return sh_config_refuse(c, "rope_parameters", "an object with full_attention and sliding_attention", e);
    if (read_by_kind(a, c, "rope_theta", 1e12, base, e) ||
        read_by_kind(a, c, "partial_rotary_factors", 1, share, e))
        return -1;
    for (int i = 0; i < 2; i++) {
        n_rot[i] = (int)((float)a->d_head * share[i]);
        if (n_rot[i] < 2 || n_rot[i] % 2)
            return sh_config_refuse(c, "partial_rotary_factors", "shares of a head with an even number of elements, at "
                                    "least 2", e);
        if (!(base[i] > 1))
            return sh_config_refuse(c, "rope_theta", "numbers above 1", e);
    }
    if (sh_config_is_set(c, "rope_scaling.partial_rotary_factor"))
        return sh_config_refuse(c, "rope_scaling.partial_rotary_factor", "nothing: partial_rotary_factors says it", e);
    if (sh_config_is_filled(c, "rope_scaling") && !sh_config_has(c, "rope_scaling.rope_type"))
        return sh_config_refuse(c, "rope_scaling", "an object with rope_type", e);
    a->local_n_rot = n_rot[0];
    a->n_rot = n_rot[1];
    a->local_rope.base = base[0];
    a->rope.base = base[1];
    if (sh_config_rope(c, whole, a, &a->rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    return 0;
}

/* Limits of SwiGLU's factors, after the activation, in the layers whose number in the list is not 0. */
static int read_limits(struct sh_arch *a, const struct sh_config *c, const char *list, enum sh_limited what,
                       struct sh_err *e)
{
    struct sh_limits *m = &a->limits[what];
    int n = sh_config_length(c, list);
    if (n < 0 || (n && n < a->n_layer))
        return sh_config_refuse(c, list, "a list with a number or null for each layer", e);
    for (int i = 0; i < a->n_layer && n; i++) {
        char key[64];
        float x = 0;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_real(c, key, 1e6, &x, e))
            return -1;
        if (!(x > 0))
            continue;
        if (x < 0.28f || (m->gate > 0 && (x < m->gate || x > m->gate)))
            return sh_config_refuse(c, key, "0, or a number of at least 0.28, the same in all layers", e);
        m->gate = m->up = x;
        sh_arch_limit(a, i, what);
    }
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float by = (float)a->d_head;
    if (!sh_config_is(c, "yarn_only_types", "[\"full_attention\"]"))
        return sh_config_refuse(c, "yarn_only_types", "[\"full_attention\"]", e);
    if (sh_config_real(c, "query_pre_attn_scalar", 1e6, &by, e))
        return -1;
    if (!(by > 0))
        return sh_config_refuse(c, "query_pre_attn_scalar", "a number above 0", e);
    a->scale = 1 / sqrtf(by);
    return finish_rope(a, c, e) || read_limits(a, c, "swiglu_limits", SH_LIMITS_EXPERTS, e) ||
           read_limits(a, c, "swiglu_limits_shared", SH_LIMITS_OTHERS, e) ? -1 : 0;
}

const struct sh_family sh_family_step3p7 = {
    .special = "a gate for each head, windows with rotation of their own, experts with limits of SwiGLU",
    .name = "step3p7", .model_types = SH_WORDS("step3p5", "step3p7"),
    .architectures = SH_WORDS("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration", "Step3p7Model",
                              "Step3p7TextModel", "Step3p5Model"),
    .prefixes = SH_WORDS("model.", "", "model.language_model.", "language_model.model.", "language_model."),
    .start = {SH_LLAMA_START_EPS(1e-5f), .n_kv_head = 8, .d_head = 128, .d_ff = 11264, .local_rope = {.base = 10000},
              .gates_heads = 1,
              .mix = {.n = 288, .used = 8, .width = 1280, .shared_width = 1280, .scale = 1,
                      .route = SH_ROUTE_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_ATTENTION_GATE | SH_MIX_NORMED | SH_NORM_PLUS_ONE},
    .keys = keys, .params = params, .gguf = &sh_gguf_step3p7,
    .only = SH_WORDS("hidden_act=\"silu\"", "mlp_bias=false", "gating=true", "use_bidirectional_attention=false",
                     "use_head_wise_attn_gate=true", "use_moe_router_bias=true", "moe_router_activation=\"sigmoid\"",
                     "norm_expert_weight=true", "use_rope_layers=[]", "tie_word_embeddings=false"),
    .knows = " sliding_window layer_types mlp_layer_types num_nextn_predict_layers per_layer_config "
             "first_k_dense_replace ",
    .shape = shape, .finish = finish};
