/* SPDX-License-Identifier: Apache-2.0 */
/* The newer families in GGUF files: their architectures' names, and what their keys are called in config.json. Keys and
 * conventions are those of llama.cpp (gguf-py's constants.py, the converters of the families, its loaders). */
#include "src/model/families/families.h"

#define LAYERS SH_GGUF_COUNT_ITEM("block_count", "num_hidden_layers")
#define WIDTH SH_GGUF_COUNT_ITEM("embedding_length", "hidden_size")
#define HEADS \
    SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), \
    SH_GGUF_MAYBE(COUNT, "attention.head_count_kv", "num_key_value_heads")
#define POSITIONS SH_GGUF_COUNT_ITEM("context_length", "max_position_embeddings")
#define FEED SH_GGUF_COUNT_ITEM("feed_forward_length", "intermediate_size")
#define RMS SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "rms_norm_eps")
#define EPSILON(hub) SH_GGUF_NUMBER_ITEM("attention.layer_norm_epsilon", hub)
#define COMMON LAYERS, WIDTH, HEADS, POSITIONS
#define LLAMA COMMON, FEED, RMS
#define EXPERTS(hub) \
    SH_GGUF_COUNT_ITEM("expert_count", hub), SH_GGUF_COUNT_ITEM("expert_used_count", "num_experts_per_tok")
#define EXPERT_WIDTH(hub) SH_GGUF_COUNT_ITEM("expert_feed_forward_length", hub)
#define SIGMOID {.name = "expert_gating_func", .kind = SH_GGUF_GATING, .value = 2, .optional = 1}
#define SOFTMAX {.name = "expert_gating_func", .kind = SH_GGUF_GATING, .value = 1, .optional = 1}
/* Absent, they are 1 and false, whatever the family's usual values are. */
#define WEIGHTS(scale, norm) SH_GGUF_IS(scale, "1.0"), SH_GGUF_IS(norm, "false"), WEIGHTS_OR_USUAL(scale, norm)
#define WEIGHTS_OR_USUAL(scale, norm) \
    SH_GGUF_MAYBE(NUMBER, "expert_weights_scale", scale), SH_GGUF_MAYBE(FLAG, "expert_weights_norm", norm)
#define SHARED(hub) SH_GGUF_MAYBE(COUNT, "expert_shared_count", hub)
#define GROUPS \
    {.name = "expert_group_count", .hub = "n_group", .kind = SH_GGUF_COUNT, .optional = 2}, \
    {.name = "expert_group_used_count", .hub = "topk_group", .kind = SH_GGUF_COUNT, .optional = 2}
#define DENSE(hub) SH_GGUF_MAYBE(COUNT, "leading_dense_block_count", hub)
#define QKV_BIAS(hub) SH_GGUF_IF("blk.0.attn_q.bias", hub, "true", "false")
#define ROTARY SH_GGUF_ROTARY | SH_GGUF_HEAD

/* A norm before the feed-forward block under the name that others give one after attention. */
static const struct sh_gguf_name after_attention[] = {
    {SH_MLP_NORM_W, "blk.#.post_attention_norm.weight", 0}, {0, NULL, 0}};

#define FORM(family, ...) const struct sh_gguf_form sh_gguf_##family = {__VA_ARGS__, .base_key = "rope_theta"}

/* ---- mixtures ---- */

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
FORM(gpt_oss, .arch = "gpt-oss", .items = items_gpt_oss, .names = after_attention,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_WHOLE_YARN);

#define SIGMOID_MIXTURE \
    LLAMA, EXPERTS("n_routed_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID, \
    WEIGHTS("routed_scaling_factor", "norm_topk_prob"), SHARED("n_shared_experts"), GROUPS, \
    DENSE("first_k_dense_replace")
static const struct sh_gguf_item items_glm4_moe[] = {
    SIGMOID_MIXTURE, QKV_BIAS("attention_bias"),
    SH_GGUF_IF("blk.0.attn_q_norm.weight", "use_qk_norm", "true", "false"), {.name = NULL}};
FORM(glm4_moe, .arch = "glm4moe", .items = items_glm4_moe, .names = after_attention,
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

#define MULTIPLIERS \
    SH_GGUF_MAYBE(NUMBER, "attention.scale", "attention_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "embedding_scale", "embedding_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "residual_scale", "residual_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "logit_scale", "logits_scaling")
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

/* ---- the delta rule ---- */

#define DELTA_NAMES \
    {SH_MLP_NORM_W, "blk.#.post_attention_norm.weight", 0}, {SH_ATTN_GATE_W, "blk.#.attn_q.weight", 0}, \
    {SH_RECUR_Q_W, "blk.#.attn_qkv.weight", 0}, {SH_RECUR_K_W, "blk.#.attn_qkv.weight", 0}, \
    {SH_RECUR_V_W, "blk.#.attn_qkv.weight", 0}, {SH_RECUR_Z_W, "blk.#.attn_gate.weight", 0}, \
    {SH_RECUR_CONV, "blk.#.ssm_conv1d.weight", 0}, {SH_RECUR_LOG_A, "blk.#.ssm_a", 0}, \
    {SH_RECUR_STEP, "blk.#.ssm_dt.bias", 0}, {SH_RECUR_NORM_W, "blk.#.ssm_norm.weight", 0}, \
    {SH_RECUR_OUT_W, "blk.#.ssm_out.weight", 0}
#define DELTA_ITEMS \
    SH_GGUF_COUNT_ITEM("ssm.conv_kernel", "linear_conv_kernel_dim"), \
    SH_GGUF_COUNT_ITEM("ssm.state_size", "linear_key_head_dim"), \
    SH_GGUF_COUNT_ITEM("ssm.group_count", "linear_num_key_heads"), \
    SH_GGUF_COUNT_ITEM("ssm.time_step_rank", "linear_num_value_heads"), \
    SH_GGUF_COUNT_ITEM("ssm.inner_size", "ssm.inner_size"), \
    {.name = "ssm.time_step_rank", .hub = "linear_value_head_dim", .kind = SH_GGUF_SHARE_OF, \
     .json = "ssm.inner_size"}, \
    SH_GGUF_MAYBE(COUNT, "full_attention_interval", "full_attention_interval")

static const struct sh_gguf_name next_names[] = {
    DELTA_NAMES, {SH_RECUR_B_W, "blk.#.ssm_ba.weight", 0}, {SH_RECUR_A_W, "blk.#.ssm_ba.weight", 0}, {0, NULL, 0}};
#define DELTA_EXPERTS \
    COMMON, RMS, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SOFTMAX, \
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"), \
    SH_GGUF_COUNT_ITEM("expert_shared_feed_forward_length", "shared_expert_intermediate_size"), DELTA_ITEMS
static const struct sh_gguf_item items_next[] = {
    DELTA_EXPERTS, SH_GGUF_IS("norm_topk_prob", "true"), {.name = NULL}};
FORM(qwen3_next, .arch = "qwen3next", .items = items_next, .names = next_names, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE);

/* Converters put the value heads in another order: first one of each key head, then the next of each. */
static const struct sh_gguf_name names_3_5[] = {
    DELTA_NAMES, {SH_RECUR_B_W, "blk.#.ssm_beta.weight", 0}, {SH_RECUR_A_W, "blk.#.ssm_alpha.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_3_5[] = {
    LLAMA, DELTA_ITEMS, SH_GGUF_IS("gguf.linear_heads_in_turns", "1"), {.name = NULL}};
static const struct sh_gguf_item items_3_5_moe[] = {
    DELTA_EXPERTS, SH_GGUF_IS("gguf.linear_heads_in_turns", "1"), {.name = NULL}};
FORM(qwen3_5, .arch = "qwen35", .items = items_3_5, .names = names_3_5, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE);
FORM(qwen3_5_moe, .arch = "qwen35moe", .items = items_3_5_moe, .names = names_3_5,
     .share_key = "partial_rotary_factor", .traits = ROTARY | SH_GGUF_SHARE);

/* ---- state spaces and short convolutions ---- */

#define MAMBA_NAMES \
    {SH_RECUR_Z_W, "blk.#.ssm_in.weight", 0}, {SH_RECUR_X_W, "blk.#.ssm_in.weight", 0}, \
    {SH_RECUR_A_W, "blk.#.ssm_in.weight", 0}, {SH_RECUR_CONV, "blk.#.ssm_conv1d.weight", 0}, \
    {SH_RECUR_CONV_B, "blk.#.ssm_conv1d.bias", 0}, {SH_RECUR_LOG_A, "blk.#.ssm_a", 0}, \
    {SH_RECUR_STEP, "blk.#.ssm_dt.bias", 0}, {SH_RECUR_SKIP, "blk.#.ssm_d", 0}, \
    {SH_RECUR_NORM_W, "blk.#.ssm_norm.weight", 0}, {SH_RECUR_OUT_W, "blk.#.ssm_out.weight", 0}
#define MAMBA_2(conv, state, groups, heads, width) \
    SH_GGUF_COUNT_ITEM("ssm.conv_kernel", conv), SH_GGUF_COUNT_ITEM("ssm.state_size", state), \
    SH_GGUF_COUNT_ITEM("ssm.group_count", groups), SH_GGUF_COUNT_ITEM("ssm.time_step_rank", heads), \
    SH_GGUF_COUNT_ITEM("ssm.inner_size", "ssm.inner_size"), \
    {.name = "ssm.time_step_rank", .hub = width, .kind = SH_GGUF_SHARE_OF, .json = "ssm.inner_size"}
#define BLOCKS(list, word, alone) {.hub = list, .kind = SH_GGUF_BLOCKS, .json = word, .value = alone}

/* rope.scaling.finetuned says whether there is a rotation at all. */
static const struct sh_gguf_name hybrid_names[] = {
    MAMBA_NAMES, {SH_GATE_W, "blk.#.ffn_gate.weight", 0}, {SH_UP_W, "blk.#.ffn_up.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_hybrid[] = {
    LLAMA, SH_GGUF_IS("num_local_experts", "0"),
    {.name = "expert_count", .hub = "num_local_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 1},
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "shared_intermediate_size"), SOFTMAX, MULTIPLIERS,
    SH_GGUF_IS("gguf.rotates", "true"),
    SH_GGUF_MAYBE(FLAG, "rope.scaling.finetuned", "gguf.rotates"), BLOCKS("layer_types", "mamba", 0),
    MAMBA_2("mamba_d_conv", "mamba_d_state", "mamba_n_groups", "mamba_n_heads", "mamba_d_head"), {.name = NULL}};
FORM(granitemoehybrid, .arch = "granitehybrid", .items = items_hybrid, .names = hybrid_names,
     .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_SCALE | SH_GGUF_SPARSE);

/* Converters multiply the weights by all factors, and leave ".weight" out of the name of a norm. */
static const struct sh_gguf_name falcon_h1_names[] = {
    MAMBA_NAMES, {SH_MLP_NORM_W, "blk.#.ffn_norm", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_falcon_h1[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("ssm.inner_size", "mamba_d_ssm"), SH_GGUF_IS("mamba_norm_before_gate", "false"),
    SH_GGUF_IF("blk.0.ssm_norm.weight", "mamba_rms_norm", "true", "false"),
    SH_GGUF_IF("blk.0.ssm_conv1d.bias", "mamba_conv_bias", "true", "false"),
    MAMBA_2("mamba_d_conv", "mamba_d_state", "mamba_n_groups", "mamba_n_heads", "mamba_d_head"), {.name = NULL}};
FORM(falcon_h1, .arch = "falcon-h1", .items = items_falcon_h1, .names = falcon_h1_names, .traits = ROTARY);

static const struct sh_gguf_name jamba_names[] = {
    MAMBA_NAMES, {SH_RECUR_MIX_W, "blk.#.ssm_x.weight", 0}, {SH_RECUR_STEP_W, "blk.#.ssm_dt.weight", 0},
    {SH_RECUR_STEP_NORM_W, "blk.#.ssm_dt_norm.weight", 0}, {SH_RECUR_B_NORM_W, "blk.#.ssm_b_norm.weight", 0},
    {SH_RECUR_C_NORM_W, "blk.#.ssm_c_norm.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_jamba[] = {
    LLAMA, EXPERTS("num_experts"), SH_GGUF_COUNT_ITEM("ssm.conv_kernel", "mamba_d_conv"),
    SH_GGUF_COUNT_ITEM("ssm.state_size", "mamba_d_state"), SH_GGUF_COUNT_ITEM("ssm.time_step_rank", "mamba_dt_rank"),
    SH_GGUF_COUNT_ITEM("ssm.inner_size", "ssm.inner_size"),
    {.name = "embedding_length", .hub = "mamba_expand", .kind = SH_GGUF_SHARE_OF, .json = "ssm.inner_size"},
    BLOCKS("layer_types", "mamba", 0), {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS}, {.name = NULL}};
FORM(jamba, .arch = "jamba", .items = items_jamba, .names = jamba_names, .traits = SH_GGUF_HEAD | SH_GGUF_SPARSE);

static const struct sh_gguf_name nemotron_h_names[] = {MAMBA_NAMES, {0, NULL, 0}};
static const struct sh_gguf_item items_nemotron_h[] = {
    COMMON, {.name = "feed_forward_length", .hub = "intermediate_size", .kind = SH_GGUF_COUNT, .optional = 2},
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_epsilon", "layer_norm_epsilon"),
    {.name = "expert_count", .hub = "n_routed_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2},
    SH_GGUF_MAYBE(COUNT, "expert_feed_forward_length", "moe_intermediate_size"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
    SHARED("n_shared_experts"), WEIGHTS("routed_scaling_factor", "norm_topk_prob"), GROUPS, SIGMOID,
    BLOCKS("layers_block_type", "mamba", 1),
    MAMBA_2("conv_kernel", "ssm_state_size", "n_groups", "mamba_num_heads", "mamba_head_dim"), {.name = NULL}};
FORM(nemotron_h, .arch = "nemotron_h", .mixed_arch = "nemotron_h_moe", .items = items_nemotron_h,
     .names = nemotron_h_names, .traits = SH_GGUF_HEAD | SH_GGUF_SPARSE);

static const struct sh_gguf_name lfm2_names[] = {
    {SH_FINAL_NORM_W, "token_embd_norm.weight", 0}, {SH_RECUR_B_W, "blk.#.shortconv.in_proj.weight", 0},
    {SH_RECUR_Z_W, "blk.#.shortconv.in_proj.weight", 0}, {SH_RECUR_X_W, "blk.#.shortconv.in_proj.weight", 0},
    {SH_RECUR_CONV, "blk.#.shortconv.conv.weight", 0}, {SH_RECUR_OUT_W, "blk.#.shortconv.out_proj.weight", 0},
    {0, NULL, 0}};
#define LFM2 \
    COMMON, FEED, SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "norm_eps"), \
    SH_GGUF_COUNT_ITEM("shortconv.l_cache", "conv_L_cache"), BLOCKS("layer_types", "conv", 0)
static const struct sh_gguf_item items_lfm2[] = {
    LFM2, SH_GGUF_IS("block_auto_adjust_ff_dim", "false"), {.name = NULL}};
FORM(lfm2, .arch = "lfm2", .items = items_lfm2, .names = lfm2_names, .traits = ROTARY | SH_GGUF_SPARSE);
static const struct sh_gguf_item items_lfm2_moe[] = {
    LFM2, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID, DENSE("num_dense_layers"),
    WEIGHTS_OR_USUAL("routed_scaling_factor", "norm_topk_prob"), {.name = NULL}};
FORM(lfm2_moe, .arch = "lfm2moe", .items = items_lfm2_moe, .names = lfm2_names, .traits = ROTARY | SH_GGUF_SPARSE);

/* ---- dense models ---- */

static const struct sh_gguf_item items_granite[] = {
    LLAMA, MULTIPLIERS, {.name = NULL}};
FORM(granite, .arch = "granite", .items = items_granite, .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_SCALE);

/* One base of the rotation for all layers that rotate. The shared expert's gates and rows to gate are one tensor. */
static const struct sh_gguf_item items_granite_swa[] = {
    LLAMA, MULTIPLIERS, SOFTMAX,
    {.name = "expert_count", .hub = "num_local_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2},
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "shared_intermediate_size"),
    {.name = "attention.rope_pattern", .hub = "layer_rope_theta", .kind = SH_GGUF_LIST}, {.name = NULL}};
static const struct sh_gguf_name names_granite_swa[] = {
    {SH_SHARED_GATE_W, "blk.#.ffn_up_shexp.weight", 0}, {0, NULL, 0}};
FORM(granite_swa, .arch = "granite_swa", .mixed_type = "granitemoe_swa", .items = items_granite_swa,
     .names = names_granite_swa,
     .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_SCALE | SH_GGUF_WINDOW | SH_GGUF_LAYERS);

static const struct sh_gguf_item items_cohere[] = {
    COMMON, FEED, EPSILON("layer_norm_eps"), SH_GGUF_NUMBER_ITEM("logit_scale", "logit_scale"),
    SH_GGUF_IF("blk.0.attn_q_norm.weight", "use_qk_norm", "true", "false"), {.name = NULL}};
FORM(cohere, .arch = "command-r", .items = items_cohere, .traits = ROTARY);
static const struct sh_gguf_item items_cohere2[] = {
    COMMON, FEED, EPSILON("layer_norm_eps"), SH_GGUF_NUMBER_ITEM("logit_scale", "logit_scale"), {.name = NULL}};
FORM(cohere2, .arch = "cohere2", .items = items_cohere2, .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS);

static const struct sh_gguf_item items_olmo[] = {
    COMMON, FEED, SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_epsilon", "layer_norm_epsilon"),
    SH_GGUF_MAYBE(NUMBER, "attention.clamp_kqv", "clip_qkv"), {.name = NULL}};
FORM(olmo, .arch = "olmo", .items = items_olmo, .traits = ROTARY | SH_GGUF_IN_PAIRS);

static const struct sh_gguf_item items_llama[] = {
    LLAMA, {.name = NULL}};
FORM(olmo2, .arch = "olmo2", .items = items_llama, .windowed_type = "olmo3",
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS);
/* The multiplier is the whole of what the size of turns is divided by, not a tenth of it as in DeepSeek's files. */
static const struct sh_gguf_item items_ministral3[] = {
    LLAMA, SH_GGUF_MAYBE(NUMBER, "attention.temperature_scale", "rope_scaling.llama_4_scaling_beta"),
    SH_GGUF_MAYBE(NUMBER, "rope.scaling.yarn_log_multiplier", "rope_scaling.mscale_all_dim"), {.name = NULL}};
FORM(ministral3, .arch = "mistral3", .items = items_ministral3, .traits = ROTARY | SH_GGUF_IN_PAIRS);

FORM(arcee, .arch = "arcee", .items = items_llama, .traits = ROTARY | SH_GGUF_IN_PAIRS);
FORM(hunyuan_v1_dense, .arch = "hunyuan-dense", .items = items_llama, .traits = ROTARY);
FORM(ernie4_5, .arch = "ernie4_5", .items = items_llama, .traits = ROTARY);
FORM(gemma, .arch = "gemma", .items = items_llama, .traits = ROTARY);
FORM(exaone4, .arch = "exaone4", .items = items_llama,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_FACTORS);

FORM(apertus, .arch = "apertus", .items = items_llama, .traits = ROTARY | SH_GGUF_FACTORS);

static const struct sh_gguf_item items_smollm3[] = {
    LLAMA, SH_GGUF_IS("no_rope_layer_interval", "4"), {.name = NULL}};
FORM(smollm3, .arch = "smollm3", .items = items_smollm3, .traits = ROTARY | SH_GGUF_IN_PAIRS);

static const struct sh_gguf_item items_seed_oss[] = {
    LLAMA, QKV_BIAS("attention_bias"), SH_GGUF_IS("attention_out_bias", "false"), {.name = NULL}};
FORM(seed_oss, .arch = "seed_oss", .items = items_seed_oss, .names = after_attention,
     .traits = ROTARY | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_glm4[] = {
    LLAMA, QKV_BIAS("attention_bias"), {.name = NULL}};
FORM(glm4, .arch = "glm4", .items = items_glm4, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_stablelm[] = {
    COMMON, FEED, EPSILON("layer_norm_eps"), QKV_BIAS("use_qkv_bias"),
    SH_GGUF_IF("blk.0.attn_q_norm.weight", "qk_layernorm", "true", "false"),
    SH_GGUF_IF("blk.0.ffn_norm.weight", "use_parallel_residual", "false", "true"), {.name = NULL}};
FORM(stablelm, .arch = "stablelm", .items = items_stablelm, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_phi[] = {
    COMMON, FEED, EPSILON("layer_norm_eps"), {.name = NULL}};
FORM(phi, .arch = "phi2", .items = items_phi, .share_key = "partial_rotary_factor", .traits = ROTARY | SH_GGUF_SHARE);

static const struct sh_gguf_item items_starcoder2[] = {
    COMMON, FEED, EPSILON("norm_epsilon"), QKV_BIAS("use_bias"), {.name = NULL}};
FORM(starcoder2, .arch = "starcoder2", .items = items_starcoder2, .traits = ROTARY | SH_GGUF_WINDOW);

static const struct sh_gguf_item items_starcoder[] = {
    LAYERS, WIDTH, HEADS, SH_GGUF_COUNT_ITEM("context_length", "n_positions"),
    SH_GGUF_COUNT_ITEM("feed_forward_length", "n_inner"), EPSILON("layer_norm_epsilon"), {.name = NULL}};
const struct sh_gguf_form sh_gguf_gpt_bigcode = {.arch = "starcoder", .items = items_starcoder};

static const struct sh_gguf_item items_jais2[] = {
    COMMON, FEED, EPSILON("layer_norm_eps"), {.name = NULL}};
FORM(jais2, .arch = "jais2", .items = items_jais2, .traits = ROTARY);

static const struct sh_gguf_item items_nemotron[] = {
    COMMON, FEED, EPSILON("norm_eps"), {.name = NULL}};
FORM(nemotron, .arch = "nemotron", .items = items_nemotron, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE);

/* One norm or two in each layer: the one before attention is then the second. */
static const struct sh_gguf_name falcon_names[] = {
    {SH_ATTN_NORM_W, "blk.#.attn_norm_2.weight", SH_HAS_TWO_NORMS},
    {SH_ATTN_NORM_B, "blk.#.attn_norm_2.bias", SH_HAS_TWO_NORMS},
    {SH_MLP_NORM_W, "blk.#.attn_norm.weight", SH_HAS_TWO_NORMS},
    {SH_MLP_NORM_B, "blk.#.attn_norm.bias", SH_HAS_TWO_NORMS}, {0, NULL, 0}};
static const struct sh_gguf_item items_falcon[] = {
    COMMON, SH_GGUF_MAYBE(COUNT, "feed_forward_length", "ffn_hidden_size"), EPSILON("layer_norm_epsilon"),
    SH_GGUF_MAYBE(COUNT, "attention.head_count_kv", "num_kv_heads"), SH_GGUF_IS("new_decoder_architecture", "true"),
    SH_GGUF_IF("blk.0.attn_norm_2.weight", "num_ln_in_parallel_attn", "2", "1"), {.name = NULL}};
FORM(falcon, .arch = "falcon", .items = items_falcon, .names = falcon_names, .traits = SH_GGUF_ROTARY);

static const struct sh_gguf_item items_mpt[] = {
    LAYERS, WIDTH, HEADS, POSITIONS, FEED, EPSILON("layer_norm_epsilon"),
    SH_GGUF_MAYBE(NUMBER, "attention.clamp_kqv", "attn_config.clip_qkv"), {.name = NULL}};
const struct sh_gguf_form sh_gguf_mpt = {.arch = "mpt", .items = items_mpt, .traits = SH_GGUF_ALIBI};

/* Gemma 3n: streams in one tensor, sparsity as deviations above the mean. */
#define OWN_NAMES \
    {SH_OWN_EMBED, "per_layer_token_embd.weight", 0}, {SH_OWN_PROJ, "per_layer_model_proj.weight", 0}, \
    {SH_OWN_NORM_W, "per_layer_proj_norm.weight", 0}, {SH_OWN_GATE_W, "blk.#.inp_gate.weight", 0}, \
    {SH_OWN_OUT_W, "blk.#.proj.weight", 0}, {SH_OWN_POST_W, "blk.#.post_norm.weight", 0}
static const struct sh_gguf_name gemma3n_names[] = {
    OWN_NAMES,
    {SH_STREAM_IN_1, "altup_proj.weight", 0}, {SH_STREAM_IN_2, "altup_proj.weight", 0},
    {SH_STREAM_IN_3, "altup_proj.weight", 0}, {SH_STREAM_OUT_1, "altup_unembd_proj.weight", 0},
    {SH_STREAM_OUT_2, "altup_unembd_proj.weight", 0}, {SH_STREAM_OUT_3, "altup_unembd_proj.weight", 0},
    {SH_ALTUP_NORM_W, "blk.#.altup_router_norm.weight", 0}, {SH_ALTUP_ROUTER_W, "blk.#.altup_router.weight", 0},
    {SH_ALTUP_PREDICT, "blk.#.altup_predict_coef.weight", 0},
    {SH_ALTUP_CORRECT, "blk.#.altup_correct_coef.weight", 0},
    {SH_ALTUP_SCALE, "blk.#.altup_correct_scale.weight", 0}, {SH_LAUREL_LEFT_W, "blk.#.laurel_l.weight", 0},
    {SH_LAUREL_RIGHT_W, "blk.#.laurel_r.weight", 0}, {SH_LAUREL_NORM_W, "blk.#.laurel_post_norm.weight", 0},
    {0, NULL, 0}};
static const struct sh_gguf_item items_gemma3n[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("altup.num_inputs", "altup_num_inputs"),
    SH_GGUF_MAYBE(COUNT, "altup.active_idx", "altup_active_idx"), SH_GGUF_IS("altup_correct_scale", "true"),
    SH_GGUF_COUNT_ITEM("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
    SH_GGUF_COUNT_ITEM("attention.shared_kv_layers", "num_kv_shared_layers"),
    SH_GGUF_MAYBE(NUMBER, "final_logit_softcapping", "final_logit_softcapping"),
    {.name = "activation_sparsity_scale", .hub = "activation_sparsity_pattern", .kind = SH_GGUF_DEVIATIONS},
    {.name = "per_layer_token_embd.weight", .hub = "vocab_size_per_layer_input", .kind = SH_GGUF_ROWS},
    {.name = "blk.0.laurel_l.weight", .hub = "laurel_rank", .kind = SH_GGUF_ROWS}, {.name = NULL}};
FORM(gemma3n, .arch = "gemma3n", .items = items_gemma3n, .names = gemma3n_names,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_LOCAL_BASE | SH_GGUF_SCALE);

/* Gemma 4: what differs by layer is in lists. */
static const struct sh_gguf_name gemma4_names[] = {
    OWN_NAMES, {0, NULL, 0}};
static const struct sh_gguf_item items_gemma4[] = {
    LAYERS, WIDTH, SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), POSITIONS, RMS,
    SH_GGUF_IF("blk.0.ffn_gate_inp.weight", "enable_moe_block", "true", "false"),
    SH_GGUF_MAYBE(COUNT, "expert_count", "num_experts"), SH_GGUF_MAYBE(COUNT, "expert_used_count", "top_k_experts"),
    SH_GGUF_MAYBE(COUNT, "expert_feed_forward_length", "moe_intermediate_size"), SOFTMAX,
    SH_GGUF_IS("hidden_size_per_layer_input", "0"),
    SH_GGUF_MAYBE(COUNT, "embedding_length_per_layer_input", "hidden_size_per_layer_input"),
    {.name = "per_layer_token_embd.weight", .hub = "vocab_size_per_layer_input", .kind = SH_GGUF_ROWS, .optional = 1},
    SH_GGUF_MAYBE(COUNT, "attention.shared_kv_layers", "num_kv_shared_layers"),
    SH_GGUF_MAYBE(NUMBER, "final_logit_softcapping", "final_logit_softcapping"), {.name = NULL}};
FORM(gemma4, .arch = "gemma4", .items = items_gemma4, .names = gemma4_names,
     .traits = ROTARY | SH_GGUF_WINDOW | SH_GGUF_LAYERS | SH_GGUF_SCALE | SH_GGUF_BY_LAYER);

static const struct sh_gguf_item items_exaone[] = {LLAMA, {.name = NULL}};
FORM(exaone, .arch = "exaone", .items = items_exaone, .traits = ROTARY | SH_GGUF_FACTORS);

/* Old files have no keys for the numbers that the first models had. */
static const struct sh_gguf_item items_minicpm[] = {
    LLAMA, SH_GGUF_IS("scale_emb", "12"), SH_GGUF_IS("scale_depth", "1.4"), SH_GGUF_IS("dim_model_base", "256"),
    SH_GGUF_MAYBE(NUMBER, "embedding_scale", "scale_emb"),
    SH_GGUF_MAYBE(NUMBER, "residual_scale", "gguf.residual_scale"),
    SH_GGUF_MAYBE(NUMBER, "logit_scale", "gguf.logit_scale"),
    {.name = "expert_count", .hub = "num_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2}, SOFTMAX,
    {.name = NULL}};
FORM(minicpm, .arch = "minicpm", .items = items_minicpm,
     .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_LONG);

static const struct sh_gguf_item items_orion[] = {
    COMMON, FEED, EPSILON("rms_norm_eps"), {.name = NULL}};
FORM(orion, .arch = "orion", .items = items_orion, .traits = SH_GGUF_ROTARY);
FORM(xverse, .arch = "xverse", .items = items_llama, .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS);
FORM(glm, .arch = "chatglm", .items = items_glm4, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_qwen[] = {
    LAYERS, WIDTH, SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), POSITIONS, FEED,
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"), {.name = NULL}};
const struct sh_gguf_form sh_gguf_qwen = {
    .arch = "qwen", .items = items_qwen, .base_key = "rotary_emb_base", .share_key = "rotary_pct",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS};

/* Converters take q, k and v apart. */
static const struct sh_gguf_name apart_names[] = {
    {SH_Q_W, "blk.#.attn_q.weight", 0}, {SH_K_W, "blk.#.attn_k.weight", 0}, {SH_V_W, "blk.#.attn_v.weight", 0},
    {SH_Q_B, "blk.#.attn_q.bias", 0}, {SH_K_B, "blk.#.attn_k.bias", 0}, {SH_V_B, "blk.#.attn_v.bias", 0}, {0, NULL, 0}};

/* Ling's first models. Converters divide the head. */
static const struct sh_gguf_item items_bailing_moe[] = {
    COMMON, RMS, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SOFTMAX,
    SH_GGUF_MAYBE(COUNT, "feed_forward_length", "intermediate_size"),
    SH_GGUF_IS("norm_topk_prob", "false"), SH_GGUF_MAYBE(FLAG, "expert_weights_norm", "norm_topk_prob"),
    SHARED("num_shared_experts"), SH_GGUF_IS("first_k_dense_replace", "0"), QKV_BIAS("use_qkv_bias"),
    SH_GGUF_IS("use_bias", "false"), {.name = NULL}};
FORM(bailing_moe, .arch = "bailingmoe", .items = items_bailing_moe, .names = apart_names,
     .traits = ROTARY | SH_GGUF_IN_PAIRS | SH_GGUF_QKV_BIAS);

const struct sh_gguf_form sh_gguf_baichuan = {
    .arch = "baichuan", .items = items_llama, .names = apart_names, .base_key = "gguf.rope_theta",
    .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS};

static const struct sh_gguf_item items_internlm2[] = {
    LLAMA, QKV_BIAS("bias"), {.name = NULL}};
FORM(internlm2, .arch = "internlm2", .items = items_internlm2, .names = apart_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS);

/* The numbers of the published model are in no key. */
static const struct sh_gguf_item items_minicpm3[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"),
    SH_GGUF_COUNT_ITEM("attention.q_lora_rank", "q_lora_rank"), SH_GGUF_IS("scale_emb", "12"),
    SH_GGUF_IS("scale_depth", "1.4"), SH_GGUF_IS("dim_model_base", "256"), {.name = NULL}};
FORM(minicpm3, .arch = "minicpm3", .items = items_minicpm3,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_LONG);

static const struct sh_gguf_item items_plm[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"), SH_GGUF_IS("tie_word_embeddings", "true"),
    {.name = NULL}};
static const struct sh_gguf_name plm_names[] = {{SH_Q_B_W, "blk.#.attn_q.weight", 0}, {0, NULL, 0}};
FORM(plm, .arch = "plm", .items = items_plm, .names = plm_names, .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT);

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
