/* SPDX-License-Identifier: Apache-2.0 */
/* The models of Qwen, and MiMo. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define KNOWS " sliding_window use_sliding_window max_window_layers layer_types "

/* Qwen 2 and 2.5 (Yang et al., 2024): LLaMA with biases on q, k and v. The window counts only with use_sliding_window,
 * and only in the layers from max_window_layers on. */
int sh_from_layer(int layer, int first)
{
    return layer >= first;
}

int sh_qwen_plain_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int uses = 0, first = 28;
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;                        /* mlp_bias is not a key of Qwen */
    if (sh_config_flag(c, "use_sliding_window", &uses, e))
        return -1;
    if (!uses)
        return 0;
    return sh_config_window(c, 4096, a, e) || sh_config_at_least(c, "max_window_layers", 0, (int)1e8, &first, e) ||
           sh_config_windows(c, sh_from_layer, first, a, e) ? -1 : 0;
}

int sh_qwen2_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags = (a->flags | SH_HAS_BIAS) & ~(unsigned)SH_HAS_OUT_BIAS;  /* nor is attention_bias one of Qwen 2 */
    return sh_qwen_plain_shape(a, c, e);
}

static const struct sh_gguf_form gguf_2 = {
    .arch = "qwen2", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD | SH_GGUF_QKV_BIAS};

const struct sh_family sh_family_qwen2 = {
    .special = "biases on queries, keys and values; windows in late layers",
    .name = "qwen2", .model_types = SH_WORDS("qwen2"), .architectures = SH_WORDS("Qwen2ForCausalLM", "Qwen2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf_2, .knows = KNOWS, .shape = sh_qwen2_shape,
    .finish = sh_config_whole_rope};

/* MiMo (Xiaomi, 2025): Qwen 2 with layers that predict further tokens, which are neither run nor counted. */
static int shape_mimo(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_OUT_BIAS;     /* attention_bias is of q, k and v alone */
    return sh_qwen2_shape(a, c, e);
}

const struct sh_family sh_family_mimo = {
    .special = "Qwen 2 with layers that predict further tokens",
    .name = "mimo", .model_types = SH_WORDS("mimo"), .architectures = SH_WORDS("MiMoForCausalLM", "MiMoModel"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = sh_llama_keys, .params = sh_llama_params, .knows = KNOWS "num_nextn_predict_layers ", .shape = shape_mimo,
    .finish = sh_config_whole_rope};

/* ---- Qwen 3 (Yang et al., 2025): Qwen 2 without the biases, with a norm on every query and key ---- */

static const struct sh_gguf_form gguf_3 = {
    .arch = "qwen3", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD};

const struct sh_family sh_family_qwen3 = {
    .special = "a norm of each query and key",
    .name = "qwen3", .model_types = SH_WORDS("qwen3"),
    .architectures = SH_WORDS("Qwen3ForCausalLM", "Qwen3Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf_3, .knows = KNOWS, .shape = sh_qwen_plain_shape,
    .finish = sh_config_whole_rope};

/* Qwen 1.5, 2 and 3 as mixtures of experts (Yang et al., 2024; 2025); Qwen 2 has a shared expert, whose output is
 * multiplied by a sigmoid. */
const struct sh_key sh_qwen_mixture_keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    {.json = {NULL}}};

#define MIXTURE \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED, \
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS
static const struct sh_param mixture_3[] = {MIXTURE, {.name = NULL}};
static const struct sh_param mixture_2[] = {
    MIXTURE, SH_SHARED("mlp.shared_expert"), SH_SHARED_PART(SCALE, "mlp.shared_expert_gate.weight", ONE_ROW, MODEL),
    {.name = NULL}};

/* Every layer has experts, or every decoder_sparse_step-th, except the layers in a list. */
int sh_qwen_mixture_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int step = 1, n = sh_config_length(c, "mlp_only_layers");
    if (sh_qwen_plain_shape(a, c, e) || sh_mixture_needs(c, a->mix.n, "num_experts", e) ||
        sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
        sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
        sh_config_count(c, "decoder_sparse_step", (int)1e8, &step, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        if ((i + 1) % step)
            sh_arch_keep_dense(a, i);
    for (int i = 0; i < n; i++) {
        char key[48];
        int layer = -1;
        snprintf(key, sizeof key, "mlp_only_layers.%d", i);
        if (sh_config_at_least(c, key, 0, a->n_layer - 1, &layer, e))
            return -1;
        if (layer >= 0)
            sh_arch_keep_dense(a, layer);
    }
    return n < 0 ? sh_config_refuse(c, "mlp_only_layers", "a list of layers", e) : 0;
}

static int even_before(int layer, int end)
{
    return layer % 2 == 0 && layer < end;
}

/* Its window, where it is used, is in every other layer before max_window_layers. */
static int mixture_shape_2(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int biased = 1, end = 28;
    if (sh_config_flag(c, "qkv_bias", &biased, e))
        return -1;
    a->flags = (a->flags & ~(unsigned)(SH_HAS_OUT_BIAS | SH_HAS_BIAS)) | (biased ? SH_HAS_BIAS : 0);
    a->mix.shared_width = 5632;
    if (sh_config_at_least(c, "shared_expert_intermediate_size", 0, (int)1e8, &a->mix.shared_width, e) ||
        sh_qwen_mixture_shape(a, c, e) ||
        (a->window && sh_config_at_least(c, "max_window_layers", 0, (int)1e8, &end, e)))
        return -1;
    memset(a->whole, 0, sizeof a->whole);
    return sh_config_windows(c, even_before, end, a, e);
}

const struct sh_family sh_family_qwen2_moe = {
    .special = "experts, and a gated shared expert for all tokens",
    .name = "qwen2_moe", .model_types = SH_WORDS("qwen2_moe"),
    .architectures = SH_WORDS("Qwen2MoeForCausalLM", "Qwen2MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS}, .keys = sh_qwen_mixture_keys, .params = mixture_2,
    .gguf = &sh_gguf_qwen2_moe,
    .knows = KNOWS, .shape = mixture_shape_2, .finish = sh_config_whole_rope};

/* Qwen 3's window, where it is used, is in every layer. */
static int mixture_shape_3(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int uses = 0;
    if (sh_config_flag(c, "use_sliding_window", &uses, e) || sh_qwen_mixture_shape(a, c, e))
        return -1;
    memset(a->whole, 0, sizeof a->whole);
    return uses ? sh_config_window(c, 4096, a, e) : 0;
}

const struct sh_family sh_family_qwen3_moe = {
    .special = "experts; a norm of each query and key",
    .name = "qwen3_moe", .model_types = SH_WORDS("qwen3_moe"),
    .architectures = SH_WORDS("Qwen3MoeForCausalLM", "Qwen3MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM}, .keys = sh_qwen_mixture_keys,
    .params = mixture_3,
    .gguf = &sh_gguf_qwen3_moe, .knows = KNOWS, .shape = mixture_shape_3, .finish = sh_config_whole_rope};

/* ---- the first Qwen (Bai et al., 2023), whose code comes with its files ----
 *
 * Up to seq_length tokens, neither use_dynamic_ntk nor use_logn_attn changes anything; with one of them, longer texts
 * are not read. (llama.cpp knows neither.) */
static const struct sh_key keys_1[] = {
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"), SH_REAL_KEY(rope.base, 1e12, "rotary_emb_base"),
    SH_REAL_KEY(rotary_share, 1, "rotary_pct"), {.json = {NULL}}};

#define H "h.#."
static const struct sh_param params_1[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(FINAL_NORM, "ln_f.weight", MODEL, 0), SH_NORM_WEIGHT(ATTN_NORM, H "ln_1.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, H "ln_2.weight", MODEL, 0), SH_LINEAR(Q, H "attn.c_attn", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, H "attn.c_attn", KV, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(V, H "attn.c_attn", KV, MODEL, SH_HAS_BIAS, 0),
    SH_MATRIX(O_W, H "attn.c_proj.weight", MODEL, Q, 0), SH_MATRIX(UP_W, H "mlp.w1.weight", FF, MODEL, 0),
    SH_MATRIX(GATE_W, H "mlp.w2.weight", FF, MODEL, 0), SH_MATRIX(DOWN_W, H "mlp.c_proj.weight", MODEL, FF, 0),
    {.name = NULL}};

/* intermediate_size is that of gate and up together. */
static int shape_1(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int wide = a->d_model / a->n_head;
    a->flags = (a->flags | SH_HAS_BIAS) & ~(unsigned)(SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_count(c, "kv_channels", 100000, &wide, e))
        return -1;
    if (wide * (long long)a->n_head != a->d_model)
        return sh_config_refuse(c, "kv_channels", "hidden_size / num_attention_heads", e);
    if (a->d_ff % 2)
        return sh_config_refuse(c, "intermediate_size", "an even number", e);
    a->d_ff /= 2;
    a->n_kv_head = a->n_head;
    return 0;
}

static int finish_1(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int stretches = !sh_config_is_gguf(c), sharpens = stretches, most = 8192;
    if (sh_config_flag(c, "use_dynamic_ntk", &stretches, e) || sh_config_flag(c, "use_logn_attn", &sharpens, e) ||
        sh_config_count(c, "seq_length", (int)1e8, &most, e) || sh_config_classic_rope(a, c, e))
        return -1;
    if ((stretches || sharpens) && most < a->max_pos)
        a->max_pos = most;
    return 0;
}

const struct sh_family sh_family_qwen = {
    .special = "biases on queries, keys and values, which are in one tensor",
    .name = "qwen", .model_types = SH_WORDS("qwen"), .architectures = SH_WORDS("QWenLMHeadModel", "QWenModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = keys_1, .params = params_1, .gguf = &sh_gguf_qwen,
    .only = SH_WORDS("no_bias=true", "scale_attn_weights=true", "use_cache_quantization=false", "rope_scaling=null",
                     "rope_parameters=null", "num_key_value_heads=null"), .shape = shape_1, .finish = finish_1};
