/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files of models with experts (gguf_forms.h). */
#include "src/model/families/gguf_forms.h"

static const struct sh_gguf_item items_qwen2_moe[] = {
    COMMON, RMS, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"),
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"), SOFTMAX,
    SH_GGUF_COUNT_ITEM("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
    SH_GGUF_IS("norm_topk_prob", "false"), {.name = NULL}};
FORM(qwen2_moe, .arch = "qwen2moe", .items = items_qwen2_moe, .traits = ROTARY | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_qwen3_moe[] = {
    COMMON, RMS, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"),
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"), SOFTMAX, SH_GGUF_IS("norm_topk_prob", "true"),
    {.name = NULL}};
FORM(qwen3_moe, .arch = "qwen3moe", .items = items_qwen3_moe, .traits = ROTARY);
FORM(qwen3_vl_moe, .arch = "qwen3vlmoe", .items = items_qwen3_moe, .traits = ROTARY);

static const struct sh_gguf_item items_olmoe[] = {
    LLAMA, EXPERTS("num_experts"), SOFTMAX, SH_GGUF_IS("norm_topk_prob", "false"), {.name = NULL}};
FORM(olmoe, .arch = "olmoe", .items = items_olmoe, .traits = ROTARY);

static const struct sh_gguf_item items_phimoe[] = {
    LLAMA, EXPERTS("num_local_experts"), SH_GGUF_IF("output.bias", "lm_head_bias", "true", "false"), {.name = NULL}};
FORM(phimoe, .arch = "phimoe", .items = items_phimoe, .traits = ROTARY | SH_GGUF_WINDOW);

static const struct sh_gguf_item items_gpt_oss[] = {
    COMMON, RMS, EXPERTS("num_local_experts"), EXPERT_WIDTH("intermediate_size"), SOFTMAX,
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "feed_forward_length"), {.name = NULL}};
FORM(gpt_oss, .arch = "gpt-oss", .items = items_gpt_oss, .names = sh_gguf_after_attention,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_WHOLE_YARN);

#define SIGMOID_MIXTURE \
    LLAMA, EXPERTS("n_routed_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID, \
    WEIGHTS("routed_scaling_factor", "norm_topk_prob"), SHARED("n_shared_experts"), GROUPS, \
    DENSE("first_k_dense_replace")
static const struct sh_gguf_item items_glm4_moe[] = {
    SIGMOID_MIXTURE, QKV_BIAS("attention_bias"),
    SH_GGUF_IF("blk.0.attn_q_norm.weight", "use_qk_norm", "true", "false"), {.name = NULL}};
FORM(glm4_moe, .arch = "glm4moe", .items = items_glm4_moe, .names = sh_gguf_after_attention,
     .share_key = "partial_rotary_factor", .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS);
static const struct sh_gguf_item items_dots1[] = {
    SIGMOID_MIXTURE, {.name = NULL}};
FORM(dots1, .arch = "dots1", .items = items_dots1, .traits = ROTARY | SH_GGUF_UNCORRECTED);

static const struct sh_gguf_item items_minimax_m2[] = {
    COMMON, RMS, EXPERTS("num_local_experts"), EXPERT_WIDTH("intermediate_size"), SIGMOID,
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "feed_forward_length"), {.name = NULL}};
FORM(minimax_m2, .arch = "minimax-m2", .items = items_minimax_m2, .share_key = "rotary_dim",
     .traits = ROTARY | SH_GGUF_COUNTS_TURNS);

static const struct sh_gguf_item items_afmoe[] = {
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    WEIGHTS("route_scale", "route_norm"), SHARED("num_shared_experts"), DENSE("num_dense_layers"),
    SH_GGUF_IS("mup_enabled", "true"), {.name = NULL}};
FORM(afmoe, .arch = "afmoe", .items = items_afmoe, .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS);

static const struct sh_gguf_item items_ernie_moe[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("expert_count", "moe_num_experts"), SH_GGUF_COUNT_ITEM("expert_used_count", "moe_k"),
    EXPERT_WIDTH("moe_intermediate_size"), SOFTMAX, SHARED("moe_num_shared_experts"), DENSE("moe_layer_start_index"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    SH_GGUF_MAYBE(COUNT, "interleave_moe_layer_step", "moe_layer_interval"), {.name = NULL}};
FORM(ernie4_5_moe, .arch = "ernie4_5-moe", .items = items_ernie_moe, .traits = ROTARY | SH_GGUF_UNCORRECTED);

/* The experts and the shared one are as wide as the feed-forward block; the base of the rotation has its alpha. */
static const struct sh_gguf_item items_hunyuan_moe[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("expert_count", "num_experts"), SH_GGUF_COUNT_ITEM("expert_used_count", "moe_topk"),
    SH_GGUF_MAYBE(COUNT, "expert_feed_forward_length", "expert_feed_forward_length"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    SHARED("expert_shared_count"), SOFTMAX, {.name = NULL}};
FORM(hunyuan_v1_moe, .arch = "hunyuan-moe", .items = items_hunyuan_moe, .traits = ROTARY);

static const struct sh_gguf_item items_exaone_moe[] = {
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    WEIGHTS("routed_scaling_factor", "norm_topk_prob"), SHARED("num_shared_experts"), GROUPS,
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    DENSE("first_k_dense_replace"), {.name = NULL}};
FORM(exaone_moe, .arch = "exaone-moe", .items = items_exaone_moe,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_FACTORS | SH_GGUF_UNCORRECTED);

/* Ling 2.0 and Sarvam 30B, which rotates whole heads. */
static const struct sh_gguf_item items_bailing[] = {
    SIGMOID_MIXTURE, SH_GGUF_IF("blk.0.attn_qkv.bias", "use_qkv_bias", "true", "false"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"), {.name = NULL}};
FORM(sarvam_moe, .arch = "bailingmoe2", .items = items_bailing, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS | SH_GGUF_UNCORRECTED);

/* The first layers have no experts: the files do not say how many, their tensors do. */
static const struct sh_gguf_item items_hy_v3[] = {
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    WEIGHTS("router_scaling_factor", "route_norm"),
    SH_GGUF_COUNT_ITEM("expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    {.name = "expert_feed_forward_length", .hub = "num_shared_experts", .kind = SH_GGUF_SHARE_OF,
     .json = "expert_shared_feed_forward_length"}, {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS}, {.name = NULL}};
static const struct sh_gguf_name names_hy_v3[] = {
    {SH_ROUTER_CHOICE, "blk.#.exp_probs_b", 0}, {0, NULL, 0}};
FORM(hy_v3, .arch = "hy_v3", .items = items_hy_v3, .names = names_hy_v3, .traits = ROTARY | SH_GGUF_UNCORRECTED);

static const struct sh_gguf_item items_mellum[] = {
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SOFTMAX,
    SH_GGUF_IS("norm_topk_prob", "true"), {.name = NULL}};
FORM(mellum, .arch = "mellum", .items = items_mellum, .period = 4,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_ROPES);

/* Shared experts give the mean with the others: converters know no other way. */
static const struct sh_gguf_item items_cohere2_moe[] = {
    COMMON, SH_GGUF_COUNT_ITEM("feed_forward_length", "prefix_dense_intermediate_size"),
    EXPERT_WIDTH("intermediate_size"), EXPERTS("num_experts"), SHARED("num_shared_experts"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    DENSE("first_k_dense_replace"), SH_GGUF_MAYBE(FLAG, "expert_weights_norm", "norm_topk_prob"),
    {.name = "expert_gating_func", .hub = "expert_selection_fn", .kind = SH_GGUF_GATING, .value = 2, .optional = 1},
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_epsilon", "layer_norm_eps"),
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    SH_GGUF_NUMBER_ITEM("logit_scale", "logit_scale"), {.name = NULL}};
FORM(cohere2_moe, .arch = "cohere2moe", .items = items_cohere2_moe,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS);

/* Version 2 has no correction of the choice; without groups its choice is greedy. */
#define DEEPSEEK \
    COMMON, RMS, SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"), \
    {.name = "expert_count", .hub = "n_routed_experts", .kind = SH_GGUF_COUNT, .optional = 2}, \
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2}, \
    SH_GGUF_MAYBE(COUNT, "expert_feed_forward_length", "moe_intermediate_size"), \
    WEIGHTS("routed_scaling_factor", "norm_topk_prob"), SHARED("n_shared_experts"), GROUPS, \
    DENSE("first_k_dense_replace"), SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"), \
    SH_GGUF_MAYBE(COUNT, "attention.q_lora_rank", "q_lora_rank"), \
    SH_GGUF_MAYBE(NUMBER, "rope.scaling.yarn_log_multiplier", "yarn_log_multiplier")
static const struct sh_gguf_item items_deepseek[] = {
    DEEPSEEK, {.name = "expert_gating_func", .hub = "scoring_func", .kind = SH_GGUF_GATING, .optional = 1},
    {.name = NULL}};
static const struct sh_gguf_name deepseek_names[] = {
    {SH_Q_B_W, "blk.#.attn_q_b.weight", SH_Q_LATENT}, {SH_Q_B_W, "blk.#.attn_q.weight", 0}, {0, NULL, 0}};
FORM(deepseek, .arch = "deepseek2", .items = items_deepseek, .names = deepseek_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_VERSIONS);

/* Converters leave the temperature out, which llama.cpp reads. */
static const struct sh_gguf_item items_mistral4[] = {
    DEEPSEEK, SOFTMAX, SH_GGUF_IS("rope_scaling.llama_4_scaling_beta", "0.0"),
    SH_GGUF_MAYBE(NUMBER, "attention.temperature_scale", "rope_scaling.llama_4_scaling_beta"),
    {.name = "attention.temperature_length", .kind = SH_GGUF_SAME, .json = "rope.scaling.original_context_length"},
    {.name = NULL}};
FORM(mistral4, .arch = "mistral4", .items = items_mistral4, .names = deepseek_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE);

/* With an index, whose tensors are left alone: up to so many tokens it chooses all that there are. */
static const struct sh_gguf_item items_indexed[] = {
    DEEPSEEK, SIGMOID, SH_GGUF_COUNT_ITEM("attention.indexer.head_count", "index_n_heads"),
    SH_GGUF_COUNT_ITEM("attention.indexer.key_length", "index_head_dim"),
    SH_GGUF_COUNT_ITEM("attention.indexer.top_k", "index_topk"),
    {.name = "attention.indexer.types", .hub = "indexer_types", .kind = SH_GGUF_LIST, .json = "full",
     .json_else = "shared"}, {.name = NULL}};
FORM(deepseek_v32, .arch = "deepseek32", .items = items_indexed, .names = deepseek_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_UNCORRECTED | SH_GGUF_INDEXED);
FORM(glm_moe_dsa, .arch = "glm-dsa", .items = items_indexed, .names = deepseek_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_UNCORRECTED | SH_GGUF_INDEXED);

static const struct sh_gguf_item items_granite_moe[] = {
    LLAMA, EXPERTS("num_local_experts"), SOFTMAX, MULTIPLIERS,
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "shared_intermediate_size"), {.name = NULL}};
FORM(granitemoe, .arch = "granitemoe", .items = items_granite_moe,
     .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_SCALE);

/* Llama 4's files do not say how long chunks are, nor where the temperature begins, unless that differs from what all
 * published models have. */
static const struct sh_gguf_item items_llama4[] = {
    COMMON, SH_GGUF_COUNT_ITEM("feed_forward_length", "intermediate_size_mlp"), RMS, EXPERTS("num_local_experts"),
    EXPERT_WIDTH("intermediate_size"), SIGMOID,
    SH_GGUF_MAYBE(COUNT, "interleave_moe_layer_step", "interleave_moe_layer_step"),
    SH_GGUF_IS("attention_chunk_size", "8192"),
    SH_GGUF_MAYBE(COUNT, "attention.sliding_window", "attention_chunk_size"),
    SH_GGUF_MAYBE(NUMBER, "attention.temperature_scale", "attn_scale"),
    SH_GGUF_MAYBE(COUNT, "attention.temperature_length", "floor_scale"), {.name = NULL}};
FORM(llama4, .arch = "llama4", .items = items_llama4, .traits = ROTARY | SH_GGUF_FACTORS);

/* Ling's first models. Converters divide the head. */
static const struct sh_gguf_item items_bailing_moe[] = {
    COMMON, RMS, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SOFTMAX,
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"),
    SH_GGUF_IS("norm_topk_prob", "false"), SH_GGUF_MAYBE(FLAG, "expert_weights_norm", "norm_topk_prob"),
    SHARED("num_shared_experts"), SH_GGUF_IS("first_k_dense_replace", "0"), QKV_BIAS("use_qkv_bias"),
    SH_GGUF_IS("use_bias", "false"), {.name = NULL}};
FORM(bailing_moe, .arch = "bailingmoe", .items = items_bailing_moe, .names = sh_gguf_apart,
     .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_dbrx[] = {
    LAYERS, WIDTH, SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"),
    SH_GGUF_COUNT_ITEM("context_length", "max_seq_len"),
    SH_GGUF_MAYBE(COUNT, "attention.head_count_kv", "attn_config.kv_n_heads"),
    SH_GGUF_COUNT_ITEM("feed_forward_length", "ffn_config.ffn_hidden_size"),
    SH_GGUF_COUNT_ITEM("expert_count", "ffn_config.moe_num_experts"),
    SH_GGUF_COUNT_ITEM("expert_used_count", "ffn_config.moe_top_k"), SOFTMAX,
    SH_GGUF_NUMBER_ITEM("attention.clamp_kqv", "attn_config.clip_qkv"), EPSILON("gguf.layer_norm_epsilon"),
    {.name = NULL}};
static const struct sh_gguf_name dbrx_names[] = {{SH_MLP_NORM_W, "blk.#.attn_output_norm.weight", 0}, {0, NULL, 0}};
const struct sh_gguf_form sh_gguf_dbrx = {
    .arch = "dbrx", .items = items_dbrx, .names = dbrx_names, .base_key = "attn_config.rope_theta",
    .traits = SH_GGUF_ROTARY};

static const struct sh_gguf_item items_smallthinker[] = {
    COMMON, RMS, SH_GGUF_COUNT_ITEM("expert_count", "moe_num_primary_experts"),
    SH_GGUF_COUNT_ITEM("expert_used_count", "moe_num_active_primary_experts"), EXPERT_WIDTH("moe_ffn_hidden_size"),
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "feed_forward_length"),
    {.name = "expert_gating_func", .hub = "gguf.gating", .kind = SH_GGUF_GATING, .optional = 1}, {.name = NULL}};
FORM(smallthinker, .arch = "smallthinker", .items = items_smallthinker,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS);

static const struct sh_gguf_item items_deepseek_moe[] = {
    LLAMA, EXPERTS("n_routed_experts"), EXPERT_WIDTH("moe_intermediate_size"), SHARED("n_shared_experts"), SOFTMAX,
    DENSE("first_k_dense_replace"), {.name = NULL}};
FORM(deepseek_moe, .arch = "deepseek", .items = items_deepseek_moe, .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS);

static const struct sh_gguf_item items_arctic[] = {
    LLAMA, EXPERTS("num_local_experts"), SOFTMAX, SH_GGUF_IS("parallel_attn_mlp_res", "true"),
    SH_GGUF_IS("moe_layer_frequency", "1"), {.name = NULL}};
static const struct sh_gguf_name arctic_names[] = {
    {SH_EXPERT_NORM_W, "blk.#.ffn_norm_exps.weight", 0}, {0, NULL, 0}};
FORM(arctic, .arch = "arctic", .items = items_arctic, .names = arctic_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS);

/* ---- windows with heads or rotation of their own ---- */

#define WINDOWED {.name = "attention.sliding_window", .hub = "sliding_window", .kind = SH_GGUF_COUNT, .value = 1}

/* llama.cpp always divides the weights of experts by their sum. */
static const struct sh_gguf_item items_mimo[] = {
    LAYERS, WIDTH, SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), POSITIONS, FEED, RMS,
    EXPERTS("n_routed_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    SH_GGUF_IS("routed_scaling_factor", "1.0"), SH_GGUF_IS("norm_topk_prob", "true"),
    WEIGHTS_OR_USUAL("routed_scaling_factor", "norm_topk_prob"), GROUPS,
    {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS}, QKV_BIAS("attention_bias"),
    WINDOWED,
    SH_GGUF_IS("attention_value_scale", "1.0"),
    {.name = "attention.value_scale", .hub = "attention_value_scale", .kind = SH_GGUF_NUMBER, .optional = 2},
    {.name = NULL}};
FORM(mimo_v2, .arch = "mimo2", .items = items_mimo, .local_base = 10000,
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_ROPES | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_QKV_BIAS |
               SH_GGUF_KV_BY_KIND | SH_GGUF_UNCORRECTED);

static const struct sh_gguf_item items_laguna[] = {
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    SHARED("expert_shared_count"),
    SH_GGUF_COUNT_ITEM("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
    SH_GGUF_NUMBER_ITEM("expert_weights_scale", "moe_routed_scaling_factor"),
    {.name = "expert_weights_norm", .kind = SH_GGUF_MUST, .value = 1}, DENSE("first_k_dense_replace"),
    {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS},
    {.name = "blk.0.attn_gate.weight", .hub = "gating", .kind = SH_GGUF_BY_HEAD, .json = "per-head",
     .json_else = "per-element"}, {.name = NULL}};
FORM(laguna, .arch = "laguna", .items = items_laguna, .period = -4,
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_ROPES | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_UNEVEN);

/* Layers without a window rotate half of what others do. */
static const struct sh_gguf_item items_step[] = {
    LLAMA, WINDOWED, EXPERTS("n_routed_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID,
    SH_GGUF_COUNT_ITEM("expert_shared_feed_forward_length", "share_expert_dim"),
    SH_GGUF_IS("moe_router_scaling_factor", "1.0"),
    SH_GGUF_MAYBE(NUMBER, "expert_weights_scale", "moe_router_scaling_factor"),
    {.name = "expert_weights_norm", .kind = SH_GGUF_MUST, .value = 1}, DENSE("leading_dense_block_count"),
    {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS},
    {.name = "swiglu_clamp_exp", .hub = "swiglu_limits", .kind = SH_GGUF_NUMBERS},
    {.name = "swiglu_clamp_shexp", .hub = "swiglu_limits_shared", .kind = SH_GGUF_NUMBERS}, {.name = NULL}};
FORM(step3p7, .arch = "step35", .items = items_step, .local_base = 10000,
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_ROPES | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_FACTORS |
               SH_GGUF_HALF_TURNS | SH_GGUF_UNCORRECTED | SH_GGUF_UNEVEN);
