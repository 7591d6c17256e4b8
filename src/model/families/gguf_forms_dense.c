/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files of models without experts and recurrences (gguf_forms.h). */
#include "src/model/families/gguf_forms.h"

const struct sh_gguf_name sh_gguf_after_attention[] = {
    {SH_MLP_NORM_W, "blk.#.post_attention_norm.weight", 0}, {0, NULL, 0}};

const struct sh_gguf_name sh_gguf_apart[] = {
    {SH_Q_W, "blk.#.attn_q.weight", 0}, {SH_K_W, "blk.#.attn_k.weight", 0}, {SH_V_W, "blk.#.attn_v.weight", 0},
    {SH_Q_B, "blk.#.attn_q.bias", 0}, {SH_K_B, "blk.#.attn_k.bias", 0}, {SH_V_B, "blk.#.attn_v.bias", 0},
    {0, NULL, 0}};

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
/* The base of the rotation, or that before it is stretched by alpha. */
static const struct sh_gguf_item items_hunyuan[] = {
    LLAMA, {.name = "rope.scaling.alpha", .hub = "rope_scaling.alpha", .kind = SH_GGUF_NUMBER, .optional = 2},
    {.name = NULL}};
FORM(hunyuan_v1_dense, .arch = "hunyuan-dense", .items = items_hunyuan, .traits = ROTARY);
/* llama.cpp gives the fourth section of a text position 0, unlike the model's own code. */
FORM(hunyuan_vl, .arch = "hunyuan_vl", .items = items_hunyuan, .traits = ROTARY | SH_GGUF_FOUR_SECTIONS);
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
FORM(seed_oss, .arch = "seed_oss", .items = items_seed_oss, .names = sh_gguf_after_attention,
     .traits = ROTARY | SH_GGUF_QKV_BIAS);

/* Files with sections of pictures' positions have the rows of q and k in another order: halves rotate together. */
static const struct sh_gguf_item items_glm4[] = {
    LLAMA, QKV_BIAS("attention_bias"),
    {.name = "rope.dimension_sections", .hub = "gguf.halves", .kind = SH_GGUF_SECTIONS}, {.name = NULL}};
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

static const struct sh_gguf_item items_qwen[] = {
    LAYERS, WIDTH, SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), POSITIONS, FEED,
    SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"), {.name = NULL}};
const struct sh_gguf_form sh_gguf_qwen = {
    .arch = "qwen", .items = items_qwen, .base_key = "rotary_emb_base", .share_key = "rotary_pct",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS};

static const struct sh_gguf_item items_internlm2[] = {
    LLAMA, QKV_BIAS("bias"), {.name = NULL}};
FORM(internlm2, .arch = "internlm2", .items = items_internlm2, .names = sh_gguf_apart,
     .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS);

static const struct sh_gguf_item items_chatglm[] = {
    LLAMA, QKV_BIAS("attention_bias"), {.name = NULL}};
FORM(glm, .arch = "chatglm", .items = items_chatglm, .share_key = "partial_rotary_factor",
     .traits = ROTARY | SH_GGUF_SHARE | SH_GGUF_QKV_BIAS);

static const struct sh_gguf_item items_paddleocr[] = {
    LLAMA, QKV_BIAS("use_bias"), {.name = NULL}};
FORM(paddleocr_vl, .arch = "paddleocr", .items = items_paddleocr, .traits = ROTARY);

/* Files without the name of an activation are of the first models, which have SiLU. */
static const struct sh_gguf_name bitnet_names[] = {
    {SH_O_NORM_W, "blk.#.attn_sub_norm.weight", 0}, {SH_DOWN_NORM_W, "blk.#.ffn_sub_norm.weight", 0}, {0, NULL, 0}};
static const struct sh_gguf_item items_bitnet[] = {
    LLAMA, {.name = "hidden_activation", .hub = "hidden_act", .kind = SH_GGUF_WORD, .json = "\"silu\""},
    {.name = NULL}};
FORM(bitnet, .arch = "bitnet", .items = items_bitnet, .names = bitnet_names, .traits = ROTARY);

const struct sh_gguf_form sh_gguf_baichuan = {
    .arch = "baichuan", .items = items_llama, .names = sh_gguf_apart, .base_key = "gguf.rope_theta",
    .traits = SH_GGUF_ROTARY | SH_GGUF_IN_PAIRS};

/* ---- latent attention ---- */

/* Of the multipliers files say nothing: they are those of the published model, the family's usual ones. */
static const struct sh_gguf_item items_minicpm3[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("attention.q_lora_rank", "q_lora_rank"),
    SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"), {.name = NULL}};
FORM(minicpm3, .arch = "minicpm3", .items = items_minicpm3,
     .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT | SH_GGUF_SCALE | SH_GGUF_LONG);

static const struct sh_gguf_item items_plm[] = {
    LLAMA, SH_GGUF_COUNT_ITEM("attention.kv_lora_rank", "kv_lora_rank"), SH_GGUF_IS("tie_word_embeddings", "true"),
    {.name = NULL}};
static const struct sh_gguf_name plm_names[] = {{SH_Q_B_W, "blk.#.attn_q.weight", 0}, {0, NULL, 0}};
FORM(plm, .arch = "plm", .items = items_plm, .names = plm_names, .traits = SH_GGUF_ROTARY | SH_GGUF_LATENT);

/* ---- layers that differ ---- */

static const struct sh_gguf_item items_openelm[] = {
    LLAMA, SH_GGUF_IS("normalize_qk_projections", "true"), {.name = NULL}};
static const struct sh_gguf_name openelm_names[] = {
    {SH_GATE_W, "blk.#.ffn_gate.weight", 0}, {SH_UP_W, "blk.#.ffn_up.weight", 0}, {0, NULL, 0}};
const struct sh_gguf_form sh_gguf_openelm = {
    .arch = "openelm", .items = items_openelm, .names = openelm_names, .base_key = "rope_freq_constant",
    .traits = ROTARY | SH_GGUF_UNEVEN};

static const struct sh_gguf_name deci_names[] = {{SH_ATTN_PRODUCT_W, "blk.#.attn_output.weight", 0}, {0, NULL, 0}};
FORM(deci, .arch = "deci", .items = items_llama, .names = deci_names,
     .traits = ROTARY | SH_GGUF_FACTORS | SH_GGUF_IN_PAIRS | SH_GGUF_UNEVEN);
