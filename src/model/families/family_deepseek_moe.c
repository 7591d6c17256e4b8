/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek-MoE 16B (DeepSeek, 2024), whose code comes with its files: LLaMA whose later layers have experts chosen by a
 * softmax, and shared ones. llama.cpp does not support expert weights that are divided by their sum. The text parts of
 * DeepSeek-OCR 2 (2026) and Unlimited-OCR (Baidu, 2026) are relatives of it. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* the family has no mlp_bias */
    return sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
           sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
           sh_mixture_shared(a, c, "n_shared_experts", 0, e) || sh_mixture_after(a, c, "first_k_dense_replace", 0, e)
               ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    sh_mixture_leave_one(a);
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (a->rope.kind != SH_ROPE_PLAIN && a->rope.kind != SH_ROPE_LINEAR && a->rope.kind != SH_ROPE_DYNAMIC)
        return sh_config_refuse(c, "rope_scaling", "linear or dynamic scaling", e);
    return 0;
}

const struct sh_family sh_family_deepseek_moe = {
    .special = "experts next to shared ones, plain layers first",
    .name = "deepseek_moe", .model_types = SH_WORDS("deepseek"), .architectures = SH_WORDS("DeepseekForCausalLM"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .mix = {.width = 1407}, .flags = SH_LLAMA_FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_deepseek_moe,
    .only = SH_WORDS("moe_layer_freq=1", "scoring_func=\"softmax\"", "head_dim=null", "rope_parameters=null"),
    .knows = " first_k_dense_replace moe_layer_freq ", .shape = shape, .finish = finish};

/* ---- the text parts of DeepSeek-OCR 2 and Unlimited-OCR: the mixture of DeepSeek-V2 with LLaMA's attention ---- */

static const struct sh_key keys_ocr[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_COUNT_KEY(mix.groups, 1e5, "n_group"),
    SH_COUNT_KEY(mix.used_groups, 1e5, "topk_group"), SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor"),
    {.json = {NULL}}};

static const struct sh_param params_ocr[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_QWEN_STACKS, SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape_ocr(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word methods[] = {{"greedy", 0}, {"group_limited_greedy", 1}, {NULL, 0}};
    int grouped = 0;
    if (sh_config_choice(c, "topk_method", methods, &grouped, e) ||
        sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
        (grouped && (sh_mixture_needs(c, a->mix.groups, "n_group", e) ||
                     sh_mixture_needs(c, a->mix.used_groups, "topk_group", e))) ||
        sh_mixture_shared(a, c, "n_shared_experts", 2, e) || sh_mixture_listed(a, c, 1, e))
        return -1;
    a->mix.groups = grouped ? a->mix.groups : 0;
    a->n_kv_head = sh_config_is_null(c, "num_key_value_heads") ? a->n_head : a->n_kv_head;
    return 0;
}

/* The width of heads always follows from their number, whatever head_dim says. */
#define OCR \
    .prefixes = sh_wrapper_prefixes, .keys = keys_ocr, .params = params_ocr, .unread = SH_WORDS("head_dim"), \
    .only = SH_WORDS("mlp_bias=false", "norm_topk_prob=false", "scoring_func=\"softmax\"", "moe_layer_freq=1", \
                     "use_mla=false")

const struct sh_family sh_family_deepseek_ocr2 = {
    .special = "text of DeepSeek-OCR 2: experts next to shared ones, plain layers first",
    .name = "deepseek_ocr2", .model_types = SH_WORDS("deepseek_ocr2_text"),
    .architectures = SH_WORDS("DeepseekOcr2TextModel"), OCR,
    .start = {SH_LLAMA_START, .mix = {.n = 64, .width = 1407}, .flags = SH_LLAMA_FLAGS},
    .knows = " mlp_layer_types first_k_dense_replace moe_layer_freq ", .shape = shape_ocr,
    .finish = sh_config_whole_rope};

/* Layers of Unlimited-OCR see the whole prompt but only the last tokens after it, all of them in texts as short as
 * that. *longest: the length of such texts. */
static int read_kinds(const struct sh_arch *a, const struct sh_config *c, int *longest, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"reference_sliding_attention", 1}, {"full_attention", 2}, {NULL, 0}};
    int window = 128, is_listed = sh_config_has(c, "layer_types.0"), forgets = !is_listed;
    if (sh_config_is_null(c, "sliding_window"))
        return sh_config_refuse(c, "sliding_window", "a whole number", e);
    if (sh_config_count(c, "sliding_window", (int)1e8, &window, e))
        return -1;
    for (int layer = 0, kind; layer < a->n_layer && is_listed; layer++) {
        if (sh_config_choice_at(c, "layer_types", layer, kinds, &kind, e))
            return -1;
        forgets |= kind == 1;
    }
    *longest = forgets && window < a->max_pos ? window : a->max_pos;
    return 0;
}

static int shape_unlimited(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int ignored;
    return shape_ocr(a, c, e) || read_kinds(a, c, &ignored, e) ? -1 : 0;
}

static int finish_unlimited(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_whole_rope(a, c, e) || read_kinds(a, c, &a->max_pos, e) ? -1 : 0;
}

const struct sh_family sh_family_unlimited_ocr = {
    .special = "text of Unlimited-OCR: experts next to shared ones, the last tokens after the prompt",
    .name = "unlimited_ocr", .model_types = SH_WORDS("unlimited_ocr_text"),
    .architectures = SH_WORDS("UnlimitedOcrTextModel"), OCR,
    .start = {SH_LLAMA_START, .n_kv_head = 10, .mix = {.n = 64, .used = 6, .width = 896}, .flags = SH_LLAMA_FLAGS},
    .knows = " mlp_layer_types first_k_dense_replace moe_layer_freq layer_types sliding_window ",
    .shape = shape_unlimited, .finish = finish_unlimited};
