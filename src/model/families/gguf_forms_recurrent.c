/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files of models whose layers do not all attend: state spaces, short convolutions, the delta rule
 * (gguf_forms.h). */
#include "src/model/families/gguf_forms.h"

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

/* Layers of delta attention have no KV heads; the number of its heads is that of the strengths. Latents do not rotate.
 * llama.cpp always divides the weights of experts by their sum. */
#define KDA_NAMES \
    {SH_Q_B_W, "blk.#.attn_q_b.weight", SH_Q_LATENT}, {SH_Q_B_W, "blk.#.attn_q.weight", 0}, \
    {SH_RECUR_Q_W, "blk.#.attn_q.weight", 0}, {SH_RECUR_K_W, "blk.#.attn_k.weight", 0}, \
    {SH_RECUR_V_W, "blk.#.attn_v.weight", 0}, {SH_RECUR_CONV, "blk.#.ssm_conv1d_q.weight", 0}, \
    {SH_RECUR_CONV_K, "blk.#.ssm_conv1d_k.weight", 0}, {SH_RECUR_CONV_V, "blk.#.ssm_conv1d_v.weight", 0}, \
    {SH_RECUR_B_W, "blk.#.ssm_beta.weight", 0}, {SH_RECUR_LOG_A, "blk.#.ssm_a", 0}, \
    {SH_RECUR_STEP, "blk.#.ssm_dt.bias", 0}, {SH_RECUR_NORM_W, "blk.#.ssm_norm.weight", 0}, \
    {SH_RECUR_OUT_W, "blk.#.attn_output.weight", 0}
#define KDA \
    LLAMA, EXPERTS("num_experts"), EXPERT_WIDTH("moe_intermediate_size"), SIGMOID, SHARED("num_shared_experts"), \
    GROUPS, DENSE("first_k_dense_replace"), BLOCKS("layer_types", "linear_attention", 0), \
    {.hub = "mlp_layer_types", .kind = SH_GGUF_FEEDS}, \
    SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"), \
    SH_GGUF_MAYBE(COUNT, "attention.q_lora_rank", "q_lora_rank"), \
    SH_GGUF_COUNT_ITEM("kda.head_dim", "linear_head_dim"), \
    SH_GGUF_COUNT_ITEM("ssm.conv_kernel", "linear_conv_kernel_dim"), \
    {.name = "blk.#.ssm_beta.weight", .hub = "linear_num_heads", .kind = SH_GGUF_ROWS}
static const struct sh_gguf_name kimi_names[] = {
    KDA_NAMES, {SH_RECUR_A_IN_W, "blk.#.ssm_f_a.weight", 0}, {SH_RECUR_A_W, "blk.#.ssm_f_b.weight", 0},
    {SH_RECUR_Z_IN_W, "blk.#.ssm_g_a.weight", 0}, {SH_RECUR_Z_W, "blk.#.ssm_g_b.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_kimi[] = {
    KDA, SH_GGUF_IS("routed_scaling_factor", "1.0"), SH_GGUF_IS("moe_renormalize", "true"),
    WEIGHTS_OR_USUAL("routed_scaling_factor", "moe_renormalize"),
    {.name = "hidden_activation", .hub = "hidden_act", .kind = SH_GGUF_WORD, .json = "\"silu\""}, {.name = NULL}};
FORM(kimi_linear, .arch = "kimi-linear", .items = items_kimi, .names = kimi_names,
     .traits = SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_SPARSE);

/* Ling 3.0: gates and decays without ranks, decays with a bound, whose numbers are e^A and not its negative. */
static const struct sh_gguf_name ling_names[] = {
    KDA_NAMES, {SH_RECUR_A_W, "blk.#.ssm_f_a.weight", 0}, {SH_RECUR_Z_W, "blk.#.ssm_g_a.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_ling[] = {
    KDA, WEIGHTS("routed_scaling_factor", "moe_renormalize"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "expert_shared_feed_forward_length"),
    {.name = "kda.safe_gate", .kind = SH_GGUF_MUST, .value = 1, .optional = 1},
    {.name = "rope.dimension_sections", .kind = SH_GGUF_SECTIONS},
    SH_GGUF_NUMBER_ITEM("kda.gate_lower_bound", "kda_lower_bound"),
    {.name = "swiglu_clamp_exp", .hub = "expert_swiglu_limit_list", .kind = SH_GGUF_NUMBERS},
    {.name = "swiglu_clamp_shexp", .hub = "share_expert_swiglu_limit_list", .kind = SH_GGUF_NUMBERS},
    {.name = NULL}};
FORM(bailing_hybrid, .arch = "bailingmoe3", .items = items_ling, .names = ling_names,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_SPARSE);

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

static const struct sh_gguf_name nemotron_h_names[] = {
    MAMBA_NAMES, {SH_EXPERT_IN_W, "blk.#.ffn_latent_down.weight", 0},
    {SH_EXPERT_OUT_W, "blk.#.ffn_latent_up.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_nemotron_h[] = {
    COMMON, {.name = "feed_forward_length", .hub = "intermediate_size", .kind = SH_GGUF_COUNT, .optional = 2},
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
    SH_GGUF_MAYBE(NUMBER, "attention.layer_norm_epsilon", "layer_norm_epsilon"),
    {.name = "expert_count", .hub = "n_routed_experts", .kind = SH_GGUF_COUNT, .optional = 2},
    {.name = "expert_used_count", .hub = "num_experts_per_tok", .kind = SH_GGUF_COUNT, .optional = 2},
    SH_GGUF_MAYBE(COUNT, "expert_feed_forward_length", "moe_intermediate_size"),
    SH_GGUF_MAYBE(COUNT, "expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
    SH_GGUF_MAYBE(COUNT, "moe_latent_size", "moe_latent_size"),
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
