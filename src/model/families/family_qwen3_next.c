/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen3-Next and Qwen 3.5 (Qwen team, 2025; 2026): three layers of the gated delta rule (delta.c) to one that attends,
 * where attention is multiplied by the sigmoid of a gate, and rotates a quarter of each head; norms stored less 1. */
#include <stdio.h>
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

#define KEYS \
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor", \
                "partial_rotary_factor"), \
    SH_COUNT_KEY(delta.n_k, 1e5, "linear_num_key_heads"), SH_COUNT_KEY(delta.n_v, 1e5, "linear_num_value_heads"), \
    SH_COUNT_KEY(delta.d_k, SH_DELTA_KEY, "linear_key_head_dim"), \
    SH_COUNT_KEY(delta.d_v, 1e5, "linear_value_head_dim"), \
    SH_COUNT_KEY(delta.kernel, SH_DELTA_TAPS, "linear_conv_kernel_dim"), \
    SH_COUNT_KEY(delta.in_turns, 1, "gguf.linear_heads_in_turns")
#define MIXTURE_KEYS \
    SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), \
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), \
    SH_COUNT_KEY(mix.shared_width, 1e8, "shared_expert_intermediate_size")

static const struct sh_key keys[] = {KEYS, {.json = {NULL}}};
static const struct sh_key keys_moe[] = {KEYS, MIXTURE_KEYS, {.json = {NULL}}};
static const struct sh_key keys_next[] = {
    KEYS, MIXTURE_KEYS, SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"), {.json = {NULL}}};

/* A tensor holds each query head's rows of queries, then of its gate. */
#define ATTENTION \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED, \
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, SH_BY_HEAD), \
    SH_LINEAR(ATTN_GATE, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, SH_BY_HEAD), \
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(O, SH_LAYER "self_attn.o_proj", MODEL, Q, SH_HAS_OUT_BIAS, 0)
#define IN(part, tensor, out, how) \
    SH_MATRIX(DELTA_##part##_W, SH_LAYER "linear_attn." tensor ".weight", out, MODEL, how)
#define DELTA \
    SH_MATRIX(DELTA_CONV, SH_LAYER "linear_attn.conv1d.weight", DELTA_CHANNELS, DELTA_KERNEL, 0), \
    SH_VECTOR(DELTA_LOG_A, SH_LAYER "linear_attn.A_log", DELTA_HEADS, 0, 0), \
    SH_VECTOR(DELTA_STEP, SH_LAYER "linear_attn.dt_bias", DELTA_HEADS, 0, 0), \
    SH_VECTOR(DELTA_NORM_W, SH_LAYER "linear_attn.norm.weight", DELTA_HEAD, 0, 0), \
    SH_MATRIX(DELTA_OUT_W, SH_LAYER "linear_attn.out_proj.weight", MODEL, DELTA_VALUES, 0)
#define DELTA_APART \
    DELTA, IN(Q, "in_proj_qkv", DELTA_KEYS, 0), IN(K, "in_proj_qkv", DELTA_KEYS, 0), \
    IN(V, "in_proj_qkv", DELTA_VALUES, 0), IN(Z, "in_proj_z", DELTA_VALUES, 0), IN(B, "in_proj_b", DELTA_HEADS, 0), \
    IN(A, "in_proj_a", DELTA_HEADS, 0)
#define SHARED \
    SH_ROUTER("mlp.gate.weight"), SH_SHARED("mlp.shared_expert"), \
    SH_SHARED_PART(SCALE, "mlp.shared_expert_gate.weight", ONE_ROW, MODEL)

static const struct sh_param params_next[] = {
    ATTENTION, SHARED, SH_LLAMA_EXPERTS, DELTA, IN(Q, "in_proj_qkvz", DELTA_KEYS, SH_BY_DELTA_HEAD),
    IN(K, "in_proj_qkvz", DELTA_KEYS, SH_BY_DELTA_HEAD), IN(V, "in_proj_qkvz", DELTA_VALUES, SH_BY_DELTA_HEAD),
    IN(Z, "in_proj_qkvz", DELTA_VALUES, SH_BY_DELTA_HEAD), IN(B, "in_proj_ba", DELTA_HEADS, SH_BY_DELTA_HEAD),
    IN(A, "in_proj_ba", DELTA_HEADS, SH_BY_DELTA_HEAD), {.name = NULL}};
static const struct sh_param params[] = {ATTENTION, DELTA_APART, {.name = NULL}};
/* Published as stacks, or expert by expert. */
static const struct sh_param params_moe[] = {
    ATTENTION, SHARED, SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS, DELTA_APART, {.name = NULL}};

static int delta_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"full_attention", 0}, {"linear_attention", 1}, {NULL, 0}};
    const struct sh_delta_shape *d = &a->delta;
    int period = 4, listed = sh_config_has(c, "layer_types.0");
    if (sh_config_count(c, "full_attention_interval", 100000000, &period, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        char key[40];
        int linear = listed ? -1 : (i + 1) % period != 0;
        snprintf(key, sizeof key, "layer_types.%d", i);
        if (listed && sh_config_choice(c, key, kinds, &linear, e))
            return -1;
        if (linear < 0)
            return sh_config_refuse(c, key, "full_attention or linear_attention for each layer", e);
        if (linear)
            sh_arch_make_linear(a, i);
    }
    if (d->n_v % d->n_k)
        return sh_config_refuse(c, "linear_num_value_heads", "a multiple of linear_num_key_heads", e);
    if ((long long)d->n_v * d->d_v > 1000000 || (long long)d->n_k * d->d_k > 1000000)
        return sh_config_refuse(c, "linear_value_head_dim", "heads of a total width of at most 10^6", e);
    return 0;
}

static int next_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_qwen_mixture_shape(a, c, e) || delta_shape(a, c, e) ? -1 : 0;
}

/* Every layer has experts; intermediate_size is then said by nobody. */
static int moe_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->d_ff = a->d_ff ? a->d_ff : a->mix.width;
    return delta_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int attends = 0;
    for (int i = 0; i < a->n_layer; i++)
        attends |= sh_arch_attends(a, i);
    if (!attends)
        return sh_config_refuse(c, "layer_types", "at least one layer of full_attention", e);
    return sh_config_classic_rope(a, c, e);
}

/* ---- its memory ---- */

#define DELTA_RULE \
    SH_FIXED_FACT(ssm, 3), SH_FIXED_FACT(query_gate, 1), SH_NEEDED_FACT(ssm_key_heads, "linear_num_key_heads"), \
    SH_NEEDED_FACT(ssm_heads, "linear_num_value_heads"), SH_NEEDED_FACT(ssm_head_dim, "linear_value_head_dim"), \
    SH_NEEDED_FACT(ssm_conv, "linear_conv_kernel_dim")
#define DELTA_KNOWS " layer_types full_attention_interval "
#define EXPERTS \
    SH_FIXED_FACT(shared_gate, 1), SH_NEEDED_FACT(experts, "num_experts", "num_local_experts"), \
    SH_NEEDED_FACT(used, "num_experts_per_tok"), SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), \
    SH_FACT(shared_ffn, 0, "shared_expert_intermediate_size")

static const struct sh_fact_key next_facts[] = {
    DELTA_RULE, EXPERTS, SH_USUAL_FACT(moe_every, 1, 1, "decoder_sparse_step"), {.json = {NULL}}};
static const struct sh_fact_key delta_facts[] = {DELTA_RULE, {.json = {NULL}}};
static const struct sh_fact_key delta_moe_facts[] = {DELTA_RULE, EXPERTS, {.json = {NULL}}};

static int count_delta(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int period = 4, key_dim = 0;
    f->moe_offset = f->moe_every - 1;
    if (sh_config_has(c, "mlp_only_layers.0"))
        return sh_config_refuse(c, "mlp_only_layers", "an empty list", e);
    if (sh_facts_count(c, "full_attention_interval", 1, &period, e) ||
        sh_facts_count(c, "linear_key_head_dim", 1, &key_dim, e) ||
        sh_config_flag(c, "attn_output_gate", &f->query_gate, e))
        return -1;
    if (key_dim != f->ssm_head_dim)
        return sh_config_refuse(c, "linear_key_head_dim", "the same as linear_value_head_dim", e);
    int listed = sh_facts_layer_types(c, f, e);
    if (listed <= 0)
        return listed;
    if (period >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "full_attention_interval", "less than 1024", e);
    memset(f->pattern, 'S', (size_t)period);
    f->pattern[period - 1] = 'G';
    f->pattern[period] = '\0';
    return 0;
}

#define START \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f, \
    .init_std = 0.02f, .max_pos = 32768, .rope = {.base = 10000}, .d_head = 256, .rotary_share = 0.25f, \
    .delta = {.n_k = 16, .n_v = 32, .d_k = 128, .d_v = 128, .kernel = 4}
#define FLAGS (SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_NORM_PLUS_ONE | SH_ATTENTION_GATE)
#define NESTED SH_WORDS("model.language_model.", "language_model.model.", "model.", "")
#define ONLY SH_WORDS("attn_output_gate=true", "hidden_act=\"silu\"")

const struct sh_family sh_family_qwen3_next = {
    .special = "gated delta rule in three of four layers, gated attention, experts",
    .name = "qwen3_next", .model_types = SH_WORDS("qwen3_next"),
    .architectures = SH_WORDS("Qwen3NextForCausalLM", "Qwen3NextModel"), .prefixes = sh_llama_prefixes,
    .start = {START, .mix = {.shared_width = 512}, .flags = FLAGS | SH_MIX_NORMED}, .keys = keys_next,
    .params = params_next, .gguf = &sh_gguf_qwen3_next, .facts = next_facts,
    .only = ONLY, .knows = DELTA_KNOWS, .shape = next_shape, .finish = finish, .count = count_delta};

const struct sh_family sh_family_qwen3_5 = {
    .special = "gated delta rule in three of four layers, gated attention",
    .name = "qwen3_5", .model_types = SH_WORDS("qwen3_5_text", "qwen3_5"),
    .architectures = SH_WORDS("Qwen3_5ForCausalLM", "Qwen3_5TextModel", "Qwen3_5ForConditionalGeneration"),
    .prefixes = NESTED, .start = {START, .flags = FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_qwen3_5, .facts = delta_facts, .only = ONLY, .knows = DELTA_KNOWS, .shape = delta_shape,
    .finish = finish, .count = count_delta};

const struct sh_family sh_family_qwen3_5_moe = {
    .special = "gated delta rule in three of four layers, gated attention, experts",
    .name = "qwen3_5_moe", .model_types = SH_WORDS("qwen3_5_moe_text", "qwen3_5_moe"),
    .architectures = SH_WORDS("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextModel", "Qwen3_5MoeForConditionalGeneration"),
    .prefixes = NESTED, .start = {START, .mix = {.n = 256, .used = 8, .width = 512, .shared_width = 512},
                                  .flags = FLAGS | SH_MIX_NORMED},
    .keys = keys_moe, .params = params_moe, .gguf = &sh_gguf_qwen3_5_moe, .facts = delta_moe_facts, .only = ONLY,
    .knows = DELTA_KNOWS, .shape = moe_shape, .finish = finish, .count = count_delta};
