/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen3-Next and Qwen 3.5 (Qwen team, 2025; 2026): for every three layers of the gated delta rule (recurrent.c), one
 * that attends, multiplies attention's output by the sigmoid of a gate, and rotates a quarter of each head; norms'
 * weights are stored less 1. Lara 4 Mini (Translated, 2026): the gated delta rule in two of five layers, windows with
 * rotation in two, and one without positions. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define KEYS \
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor", \
                "partial_rotary_factor"), \
    SH_COUNT_KEY(recurrent.n_k, 1e5, "linear_num_key_heads"), \
    SH_COUNT_KEY(recurrent.n_v, 1e5, "linear_num_value_heads"), \
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, "linear_key_head_dim"), \
    SH_COUNT_KEY(recurrent.d_v, 1e5, "linear_value_head_dim"), \
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "linear_conv_kernel_dim"), \
    SH_COUNT_KEY(recurrent.in_turns, 1, "gguf.linear_heads_in_turns")
#define MIXTURE_KEYS \
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), \
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), \
    SH_COUNT_KEY(mix.shared_width, 1e8, "shared_expert_intermediate_size")

static const struct sh_key keys[] = {KEYS, {.json = {NULL}}};
static const struct sh_key keys_moe[] = {KEYS, MIXTURE_KEYS, {.json = {NULL}}};
static const struct sh_key keys_next[] = {
    KEYS, MIXTURE_KEYS, SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"), {.json = {NULL}}};

#define ATTENTION \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED, SH_GATED_ATTENTION

static const struct sh_param params_next[] = {
    ATTENTION, SH_QWEN_SHARED, SH_LLAMA_EXPERTS, SH_DELTA_NORMED("norm"),
    SH_DELTA_IN(Q, "in_proj_qkvz", RECUR_KEYS, SH_BY_RECUR_HEAD),
    SH_DELTA_IN(K, "in_proj_qkvz", RECUR_KEYS, SH_BY_RECUR_HEAD),
    SH_DELTA_IN(V, "in_proj_qkvz", RECUR_VALUES, SH_BY_RECUR_HEAD),
    SH_DELTA_IN(Z, "in_proj_qkvz", RECUR_VALUES, SH_BY_RECUR_HEAD),
    SH_DELTA_IN(B, "in_proj_ba", RECUR_HEADS, SH_BY_RECUR_HEAD),
    SH_DELTA_IN(A, "in_proj_ba", RECUR_HEADS, SH_BY_RECUR_HEAD), {.name = NULL}};
static const struct sh_param params[] = {ATTENTION, SH_DELTA_APART, {.name = NULL}};
static const struct sh_param params_moe[] = {
    ATTENTION, SH_QWEN_SHARED, SH_QWEN_STACKS, SH_LLAMA_EXPERTS, SH_DELTA_APART, {.name = NULL}};
static const struct sh_param params_lara[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_QK_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_SHARED("mlp.shared_expert"), SH_QWEN_STACKS, SH_LLAMA_EXPERTS,
    SH_DELTA_NORMED("out_norm"), SH_DELTA_IN(Q, "in_proj", RECUR_KEYS, 0), SH_DELTA_IN(K, "in_proj", RECUR_KEYS, 0),
    SH_DELTA_IN(V, "in_proj", RECUR_VALUES, 0), SH_DELTA_IN(Z, "in_proj", RECUR_VALUES, 0),
    SH_DELTA_IN(B, "in_proj", RECUR_HEADS, 0), SH_DELTA_IN(A, "in_proj", RECUR_HEADS, 0), {.name = NULL}};

static int delta_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    int period = 4, listed = sh_config_has(c, "layer_types.0");
    if (sh_config_count(c, "full_attention_interval", 100000000, &period, e) ||
        (listed && sh_config_blocks(c, "layer_types", kinds, a, e)))
        return -1;
    for (int i = 0; i < a->n_layer && !listed; i++)
        sh_config_set_block(a, i, (i + 1) % period ? SH_BLOCK_RECURRENT : SH_BLOCK_ATTENTION);
    return sh_config_check_delta(c, a, e);
}

/* Without a list: the pattern of the released model. */
static int lara_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    enum { WHOLE = 1, WINDOW, RECURRENT };
    static const struct sh_word kinds[] = {
        {"full_attention", WHOLE}, {"sliding_attention", WINDOW}, {"linear_attention", RECURRENT}, {NULL, 0}};
    static const int pattern[] = {RECURRENT, WINDOW, RECURRENT, WHOLE, WINDOW};
    int listed = sh_config_has(c, "layer_types.0");
    if (sh_config_is_null(c, "sliding_window"))
        return sh_config_refuse(c, "sliding_window", "a whole number", e);
    if (sh_config_window(c, 512, a, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        int kind = pattern[i % 5];
        if (listed && sh_config_choice_at(c, "layer_types", i, kinds, &kind, e))
            return -1;
        sh_config_set_block(a, i, kind == RECURRENT ? SH_BLOCK_RECURRENT : SH_BLOCK_ATTENTION);
        if (kind != WINDOW)
            sh_arch_see_all(a, i);
        if (kind == WHOLE)
            sh_arch_keep_still(a, i);
    }
    a->d_ff = a->mix.width;
    return sh_config_check_delta(c, a, e);
}

static int next_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_qwen_mixture_shape(a, c, e) || delta_shape(a, c, e) ? -1 : 0;
}

/* Every layer has experts; no key then gives intermediate_size. */
static int moe_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->d_ff = a->d_ff ? a->d_ff : a->mix.width;
    return delta_shape(a, c, e);
}

static int lara_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layer_types", a, e) || sh_config_whole_rope(a, c, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layer_types", a, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

#define START \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f, \
    .init_std = 0.02f, .max_pos = 32768, .rope = {.base = 10000}, .d_head = 256, .rotary_share = 0.25f, \
    .recurrent = {.n_k = 16, .n_v = 32, .d_k = 128, .d_v = 128, .kernel = 4}
#define FLAGS (SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_NORM_PLUS_ONE | SH_ATTENTION_GATE)
#define KNOWS " layer_types full_attention_interval "
#define NESTED SH_WORDS("model.language_model.", "language_model.model.", "model.", "")
#define ONLY SH_WORDS("attn_output_gate=true", "hidden_act=\"silu\"")

const struct sh_family sh_family_qwen3_next = {
    .special = "gated delta rule in three of four layers, gated attention, experts",
    .name = "qwen3_next", .model_types = SH_WORDS("qwen3_next"),
    .architectures = SH_WORDS("Qwen3NextForCausalLM", "Qwen3NextModel"), .prefixes = sh_llama_prefixes,
    .start = {START, .mix = {.shared_width = 512}, .flags = FLAGS | SH_MIX_NORMED}, .keys = keys_next,
    .params = params_next, .gguf = &sh_gguf_qwen3_next, .only = ONLY,
    .knows = KNOWS " decoder_sparse_step mlp_only_layers ", .shape = next_shape, .finish = finish};

const struct sh_family sh_family_qwen3_5 = {
    .special = "gated delta rule in three of four layers, gated attention",
    .name = "qwen3_5", .model_types = SH_WORDS("qwen3_5_text", "qwen3_5"),
    .architectures = SH_WORDS("Qwen3_5ForCausalLM", "Qwen3_5TextModel", "Qwen3_5ForConditionalGeneration"),
    .prefixes = NESTED, .start = {START, .flags = FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_qwen3_5, .only = ONLY, .knows = KNOWS, .shape = delta_shape, .finish = finish};

const struct sh_family sh_family_qwen3_5_moe = {
    .special = "gated delta rule in three of four layers, gated attention, experts",
    .name = "qwen3_5_moe", .model_types = SH_WORDS("qwen3_5_moe_text", "qwen3_5_moe"),
    .architectures = SH_WORDS("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextModel", "Qwen3_5MoeForConditionalGeneration"),
    .prefixes = NESTED, .start = {START, .mix = {.n = 256, .used = 8, .width = 512, .shared_width = 512},
                                  .flags = FLAGS | SH_MIX_NORMED},
    .keys = keys_moe, .params = params_moe, .gguf = &sh_gguf_qwen3_5_moe, .only = ONLY, .knows = KNOWS,
    .shape = moe_shape, .finish = finish};

const struct sh_family sh_family_lara_mini = {
    .special = "gated delta rule in two of five layers, windows with rotation, experts",
    .name = "lara_mini", .model_types = SH_WORDS("lara_mini"),
    .architectures = SH_WORDS("LaraMiniForCausalLM", "LaraMiniModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .n_kv_head = 4, .d_head = 128,
              .recurrent = {.n_k = 8, .n_v = 16, .d_k = 128, .d_v = 128, .kernel = 4},
              .mix = {.n = 128, .used = 4, .width = 512, .shared_width = 512},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED | SH_TIED_HEAD},
    .keys = keys_next, .params = params_lara, .only = SH_WORDS("hidden_act=\"silu\""),
    .knows = " layer_types sliding_window ", .shape = lara_shape, .finish = lara_finish};
