/* SPDX-License-Identifier: Apache-2.0 */
/* The model families: X(name) stands for sh_family_<name>, in family_<name>.c or next to the family whose tables it
 * shares. */
#ifndef SH_MODEL_FAMILIES_H
#define SH_MODEL_FAMILIES_H

#include "src/model/families/family.h"

#define SH_FAMILIES(X) \
    X(opt) X(llama) X(mistral) X(qwen2) X(qwen3) X(phi3) X(gemma2) X(gemma3) X(gpt2) X(gpt_neo) X(gpt_neox) X(bloom) \
    X(gptj) X(mixtral) X(mimo) X(qwen2_moe) X(qwen3_moe) X(qwen3_next) X(qwen3_5) X(qwen3_5_moe) X(minimax_m2) \
    X(gemma) X(gemma4) X(falcon) X(mpt) X(deepseek) X(deepseek_v32) X(glm_moe_dsa) X(gpt_oss) X(nemotron_h) X(jamba) \
    X(bamba) X(llama4) X(olmo) X(olmo2) X(olmo3) X(granite) X(cohere) X(cohere2) X(stablelm) X(starcoder2) \
    X(gpt_bigcode) X(phi) X(codegen) X(nemotron) X(exaone4) X(ernie4_5) X(glm) X(glm4) X(hunyuan_v1_dense) \
    X(seed_oss) X(ministral) X(ministral3) X(smollm3) X(arcee) X(helium) X(apertus) X(persimmon) X(biogpt) X(xglm) \
    X(bitnet) X(vaultgemma) X(nanochat) X(olmoe) X(flex_olmo) X(granitemoe) X(phimoe) X(ernie4_5_moe) X(glm4_moe) \
    X(dots1) X(afmoe) X(youtu) X(gemma3n) X(jetmoe) X(lfm2) X(lfm2_moe) X(granitemoehybrid) \
    X(cwm) X(solar_open) X(hunyuan_v1_moe) X(glm4_moe_lite) X(exaone_moe) X(exaone) X(minicpm3) X(hyperclovax) \
    X(internlm3) X(iquestcoder) X(jais2) X(sarvam_moe) X(sarvam_mla) X(axk1) X(kolibri1) X(mellum) X(hy_v3) \
    X(granite_swa) X(granitemoe_swa) X(cohere2_moe) X(lfm3) X(laguna) X(falcon_h1) X(olmo_hybrid) \
    X(kimi_linear) X(bailing_hybrid) X(longcat_flash) X(axk2) X(minimax) X(zamba2) X(mimo_v2) X(gemma4_unified) \
    X(qwen2_vl) X(qwen3_vl) X(qwen3_vl_moe) X(qwen2_5_omni) X(qwen3_omni_moe) X(glm4v) X(glm4v_moe) \
    X(diffllama) X(apertus1p5) X(step3p7) X(hy_v4) X(hy_v4_vl) X(minimax_m3) X(doge) \
    X(mllama) X(mistral4) X(aria) X(internlm2) X(ernie4_5_vl_moe) X(glm_ocr) X(paddleocr_vl) \
    X(minicpm) X(orion) X(xverse) X(chatglm) X(qwen) X(bailing_moe) X(baichuan) X(plm) X(dbrx) \
    X(smallthinker) X(deepseek_moe) X(arctic) X(openelm) X(deci) \
    X(mistral_large4) X(flint) X(phi4_multimodal) X(lara_mini) X(cohere_compass) \
    X(modernbert_decoder) X(dory) X(glm5_next) X(deepseek_v4) X(recurrent_gemma) X(molmo2) \
    X(openai_gpt) X(ctrl) X(qwen4_exp) X(emu3) X(chameleon) X(gpt_neox_japanese) X(cosmos3_edge) X(kosmos2) \
    X(hunyuan_vl) X(deepseek_ocr2) X(unlimited_ocr) X(granite_docling) X(muse_glimmer)

#define SH_FAMILY_DECLARE(name) extern const struct sh_family sh_family_##name;
SH_FAMILIES(SH_FAMILY_DECLARE)
#undef SH_FAMILY_DECLARE

/* All of them; NULL ends. */
extern const struct sh_family *const sh_families[];

/* LLaMA's tables, which its descendants share (family_llama.c). */
extern const struct sh_key sh_llama_keys[];
extern const struct sh_param sh_llama_params[];
extern const char *const sh_llama_prefixes[];

/* `architectures` of models whose text part is of a family here, and the prefixes of its tensors' names; NULL ends. */
extern const char *const sh_wrappers[], *const sh_wrapper_prefixes[];

/* Whether the head of such a text part is the embedding: as the outer config alone says; `usual`: if it does not. */
int sh_wrapper_head(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e);

/* Models whose text part is not in text_config: it is in `part` of the object `outer`, or of the whole config if outer
 * is NULL. A NULL architecture ends. */
struct sh_wrapped_part { const char *architecture, *outer, *part; };
extern const struct sh_wrapped_part sh_wrapped_parts[];

/* Sizes that a text_config leaves out if they are the defaults of transformers' class; a NULL family ends. */
struct sh_wrapped_sizes { const char *family; int n_layer, d_model, n_head, n_kv_head, d_ff, n_vocab; };
extern const struct sh_wrapped_sizes sh_wrapped_sizes[];
extern const struct sh_gguf_item sh_llama_items[];
extern const struct sh_gguf_form sh_llama_gguf;
/* Those of the newer families (gguf_forms_….c). */
extern const struct sh_gguf_form sh_gguf_qwen2_moe, sh_gguf_qwen3_moe, sh_gguf_qwen3_vl_moe, sh_gguf_olmoe,
    sh_gguf_phimoe, sh_gguf_gpt_oss, sh_gguf_glm4_moe, sh_gguf_dots1, sh_gguf_minimax_m2, sh_gguf_afmoe,
    sh_gguf_ernie4_5_moe, sh_gguf_deepseek, sh_gguf_granitemoe, sh_gguf_granite, sh_gguf_cohere, sh_gguf_cohere2,
    sh_gguf_olmo, sh_gguf_olmo2, sh_gguf_arcee, sh_gguf_ministral3, sh_gguf_hunyuan_v1_dense, sh_gguf_hunyuan_vl,
    sh_gguf_ernie4_5, sh_gguf_gemma, sh_gguf_exaone4, sh_gguf_smollm3, sh_gguf_seed_oss, sh_gguf_glm4, sh_gguf_stablelm,
    sh_gguf_phi, sh_gguf_starcoder2, sh_gguf_gpt_bigcode, sh_gguf_nemotron, sh_gguf_falcon, sh_gguf_mpt,
    sh_gguf_qwen3_next, sh_gguf_qwen3_5, sh_gguf_qwen3_5_moe, sh_gguf_gemma3n, sh_gguf_gemma4, sh_gguf_llama4,
    sh_gguf_apertus, sh_gguf_granitemoehybrid, sh_gguf_jamba, sh_gguf_nemotron_h, sh_gguf_lfm2, sh_gguf_lfm2_moe,
    sh_gguf_hunyuan_v1_moe, sh_gguf_exaone_moe, sh_gguf_exaone, sh_gguf_sarvam_moe, sh_gguf_hy_v3, sh_gguf_mellum,
    sh_gguf_cohere2_moe, sh_gguf_deepseek_v32, sh_gguf_glm_moe_dsa, sh_gguf_granite_swa, sh_gguf_jais2,
    sh_gguf_falcon_h1, sh_gguf_minicpm, sh_gguf_orion, sh_gguf_xverse, sh_gguf_glm, sh_gguf_qwen, sh_gguf_bailing_moe,
    sh_gguf_baichuan, sh_gguf_plm, sh_gguf_dbrx, sh_gguf_smallthinker, sh_gguf_deepseek_moe, sh_gguf_internlm2,
    sh_gguf_minicpm3, sh_gguf_arctic, sh_gguf_paddleocr_vl, sh_gguf_bitnet, sh_gguf_kimi_linear, sh_gguf_mimo_v2,
    sh_gguf_laguna, sh_gguf_step3p7, sh_gguf_mistral4, sh_gguf_bailing_hybrid, sh_gguf_openelm, sh_gguf_deci;
/* eps: that of norms, if the file does not say */
#define SH_LLAMA_START SH_LLAMA_START_EPS(1e-6f)
#define SH_LLAMA_START_EPS(eps) SH_LLAMA_START_WITH(eps, 10000)
#define SH_LLAMA_START_WITH(eps, base_of_rotation) \
    .norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = eps, \
    .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = base_of_rotation}
#define SH_LLAMA_FLAGS (SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_GATED)

/* Parts of its tables, for relatives that have some of them. Biases by SH_HAS_BIAS, SH_HAS_OUT_BIAS, SH_HAS_MLP_BIAS;
 * the feed-forward block is that of layers without experts. */
#define SH_LAYER "layers.#."
#define SH_LLAMA_ENDS \
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight")
#define SH_LLAMA_FINAL_NORM SH_NORM_WEIGHT(FINAL_NORM, "norm.weight", MODEL, 0)
#define SH_LLAMA_IN_NORMS \
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "post_attention_layernorm.weight", MODEL, 0)
#define SH_LLAMA_OUT_NORMS \
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_attention_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_feedforward_layernorm.weight", MODEL, 0)
#define SH_LLAMA_ATTENTION \
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(O, SH_LAYER "self_attn.o_proj", MODEL, Q, SH_HAS_OUT_BIAS, 0)
#define SH_QK_NORM(part, tensor, wide) \
    {.role = SH_##part##_W, .name = SH_LAYER tensor, .cols = SH_DIM_HEAD, .needs = SH_HAS_QK_NORM, \
     .unless = SH_QK_NORM_WIDE}, \
    {.role = SH_##part##_W, .name = SH_LAYER tensor, .cols = SH_DIM_##wide, .needs = SH_HAS_QK_NORM | SH_QK_NORM_WIDE}
#define SH_LLAMA_QK_NORMS \
    SH_QK_NORM(Q_NORM, "self_attn.q_norm.weight", Q), SH_QK_NORM(K_NORM, "self_attn.k_norm.weight", KV)
#define SH_HEAD_NORM_PAIR(part, stem) \
    SH_VECTOR(part##_W, SH_LAYER stem ".weight", HEAD, SH_HAS_QK_NORM, 0), \
    SH_VECTOR(part##_B, SH_LAYER stem ".bias", HEAD, SH_HAS_QK_NORM, 0)
#define SH_NORM_PAIR_UNLESS(part, stem, flags) \
    {.role = SH_##part##_W, .name = stem ".weight", .cols = SH_DIM_MODEL, .unless = flags}, \
    {.role = SH_##part##_B, .name = stem ".bias", .cols = SH_DIM_MODEL, .unless = flags}
#define SH_DENSE(part, stem, out, in) \
    {.role = SH_##part##_W, .name = SH_LAYER stem ".weight", .rows = SH_DIM_##out, .cols = SH_DIM_##in, \
     .unless = SH_EXPERT_LAYER}, \
    {.role = SH_##part##_B, .name = SH_LAYER stem ".bias", .cols = SH_DIM_##out, .needs = SH_HAS_MLP_BIAS, \
     .unless = SH_EXPERT_LAYER}
#define SH_LLAMA_PLAIN_FEED SH_DENSE(UP, "mlp.up_proj", FF, MODEL), SH_DENSE(DOWN, "mlp.down_proj", MODEL, FF)
#define SH_LLAMA_FEED SH_DENSE(GATE, "mlp.gate_proj", FF, MODEL), SH_LLAMA_PLAIN_FEED

/* The tensors of a mixture of experts: its router, its experts one by one, and its shared expert. */
#define SH_EXPERT_PART(part, tensor, out, in, how) \
    {.role = SH_EXPERT_##part##_W, .name = SH_LAYER tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, \
     .needs = SH_EXPERT_LAYER, .form = how, .count = SH_DIM_EXPERTS}
#define SH_EXPERTS(stem, gate, up, down) \
    SH_EXPERT_PART(GATE, stem ".@." gate ".weight", EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(UP, stem ".@." up ".weight", EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(DOWN, stem ".@." down ".weight", MODEL, EXPERT_FF, 0)
#define SH_LLAMA_EXPERTS SH_EXPERTS("mlp.experts", "gate_proj", "up_proj", "down_proj")
#define SH_MIXTRAL_EXPERTS SH_EXPERTS("block_sparse_moe.experts", "w1", "w3", "w2")
#define SH_ROUTER(tensor) \
    {.role = SH_ROUTER_W, .name = SH_LAYER tensor, .rows = SH_DIM_EXPERTS, .cols = SH_DIM_MODEL, \
     .needs = SH_EXPERT_LAYER}
#define SH_CHOICE(tensor) \
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER tensor, .cols = SH_DIM_EXPERTS, .needs = SH_EXPERT_LAYER}
#define SH_SHARED_PART(part, tensor, out, in) \
    {.role = SH_SHARED_##part##_W, .name = SH_LAYER tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, \
     .needs = SH_SHARED_LAYER}
#define SH_SHARED(stem) \
    SH_SHARED_PART(GATE, stem ".gate_proj.weight", SHARED_FF, MODEL), \
    SH_SHARED_PART(UP, stem ".up_proj.weight", SHARED_FF, MODEL), \
    SH_SHARED_PART(DOWN, stem ".down_proj.weight", MODEL, SHARED_FF)

/* Keys of mixtures, under the names that DeepSeek and its relatives give them. */
#define SH_DEEPSEEK_MIXTURE \
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), \
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_COUNT_KEY(mix.groups, 1e5, "n_group"), \
    SH_COUNT_KEY(mix.used_groups, 1e5, "topk_group"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob", "route_norm"), \
    SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor", "route_scale")

/* Checks that the count, which this key gives, is there. -1: it is missing. */
int sh_mixture_needs(const struct sh_config *c, int count, const char *key, struct sh_err *e);
/* The key (absent: `usual`) gives the number of shared experts, which are computed as one. */
int sh_mixture_shared(struct sh_arch *a, const struct sh_config *c, const char *key, int usual, struct sh_err *e);
/* The key (absent: `usual`) gives the number of first layers without experts. */
int sh_mixture_after(struct sh_arch *a, const struct sh_config *c, const char *key, int usual, struct sh_err *e);
/* Layers without experts: those that mlp_layer_types calls dense or, without it, the first first_k_dense_replace
 * layers. */
int sh_mixture_listed(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e);
/* Experts as wide as intermediate_size, in every layer. */
sh_shape sh_mixture_shape;
/* If a token uses only one expert, its weight is not divided by the sum of weights, which would make it 1. */
void sh_mixture_leave_one(struct sh_arch *a);

/* DeepSeek's latent attention (family_deepseek.c), also with experts whose choice is corrected. finish: what the
 * forward pass needs; still: the same for models without rotation. */
#define SH_LATENT_KEYS \
    SH_STILL_LATENT_KEYS, SH_REAL_KEY(rope.base, 1e12, "rope_theta"), \
    SH_COUNT_KEY(latent.d_rope, 1e5, "qk_rope_head_dim")
#define SH_STILL_LATENT_KEYS \
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), \
    SH_COUNT_KEY(latent.rank, 1e6, "kv_lora_rank"), SH_COUNT_KEY(latent.q_rank, 1e6, "q_lora_rank"), \
    SH_COUNT_KEY(latent.d_nope, 1e5, "qk_nope_head_dim"), SH_COUNT_KEY(latent.d_v, 1e5, "v_head_dim")
#define SH_LATENT_ATTENTION(stem, out) \
    {.role = SH_Q_A_W, .name = stem "q_a_proj.weight", .rows = SH_DIM_Q_RANK, .cols = SH_DIM_MODEL, \
     .needs = SH_Q_LATENT}, \
    {.role = SH_Q_A_NORM_W, .name = stem "q_a_layernorm.weight", .cols = SH_DIM_Q_RANK, .needs = SH_Q_LATENT}, \
    {.role = SH_Q_B_W, .name = stem "q_b_proj.weight", .rows = SH_DIM_Q_B, .cols = SH_DIM_Q_RANK, \
     .needs = SH_Q_LATENT}, \
    {.role = SH_Q_B_W, .name = stem "q_proj.weight", .rows = SH_DIM_Q_B, .cols = SH_DIM_MODEL, \
     .unless = SH_Q_LATENT}, \
    {.role = SH_Q_A_B, .name = stem "q_a_proj.bias", .cols = SH_DIM_Q_RANK, .needs = SH_Q_LATENT | SH_HAS_BIAS}, \
    SH_LATENT_KEYS_VALUES(stem, out)
#define SH_LATENT_KEYS_VALUES(stem, out) \
    SH_MATRIX(KV_A_W, stem "kv_a_proj_with_mqa.weight", KV_A, MODEL, 0), \
    SH_NORM_WEIGHT(KV_A_NORM, stem "kv_a_layernorm.weight", KV_RANK, 0), \
    SH_MATRIX(KV_B_W, stem "kv_b_proj.weight", KV_B, KV_RANK, 0), \
    SH_MATRIX(O_W, stem out ".weight", MODEL, VALUES, 0), \
    SH_VECTOR(KV_A_B, stem "kv_a_proj_with_mqa.bias", KV_A, SH_HAS_BIAS, 0), \
    SH_VECTOR(O_B, stem out ".bias", MODEL, SH_HAS_OUT_BIAS, 0)
extern const struct sh_key sh_latent_keys[], sh_deepseek_keys[];
extern const struct sh_param sh_latent_params[], sh_deepseek_params[];
/* … indexed_finish: with an index, for texts so short that it chooses all tokens; index_limit: that length alone. */
sh_shape sh_latent_shape, sh_latent_finish, sh_latent_still, sh_indexed_finish, sh_index_limit;
/* The letters of layers, I or G, in f->pattern, as the keys of an index say. */
int sh_index_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e);
/* The base of the rotation stretched by alpha (family_hunyuan.c); windows with rotation, other layers without
 * (family_exaone4.c). */
sh_shape sh_hunyuan_finish, sh_exaone4_shape;

/* The shapes of Qwen 2 (with biases), of Qwen 3, and of Qwen's mixtures: which layers have experts (family_qwen.c). */
sh_shape sh_qwen2_shape, sh_qwen_plain_shape, sh_qwen_mixture_shape;
extern const struct sh_key sh_qwen_mixture_keys[];

/* Mamba-2 in place of attention (family_bamba.c): its keys, the parts of its tensors, and what the keys imply. */
#define SH_MAMBA_KEYS \
    SH_COUNT_KEY(recurrent.n_v, 1e6, "mamba_n_heads"), SH_COUNT_KEY(recurrent.n_k, 1e5, "mamba_n_groups"), \
    SH_COUNT_KEY(recurrent.d_k, 1e5, "mamba_d_state"), SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "mamba_d_conv")
#define SH_MAMBA_PART(part, tensor, rows) SH_MATRIX(RECUR_##part##_W, tensor ".weight", rows, MODEL, 0), \
    SH_VECTOR(RECUR_##part##_B, tensor ".bias", rows, 0, 0)
#define SH_MAMBA_CONV(stem, channels) \
    SH_MATRIX(RECUR_CONV, stem "conv1d.weight", RECUR_##channels, RECUR_KERNEL, 0), \
    SH_VECTOR(RECUR_CONV_B, stem "conv1d.bias", RECUR_##channels, 0, 0)
#define SH_MAMBA_OUT(stem) \
    SH_MATRIX(RECUR_OUT_W, stem "out_proj.weight", MODEL, RECUR_VALUES, 0), \
    SH_VECTOR(RECUR_OUT_B, stem "out_proj.bias", MODEL, 0, 0)
#define SH_MAMBA_2(stem) \
    SH_MAMBA_PART(Z, stem "in_proj", RECUR_VALUES), SH_MAMBA_PART(X, stem "in_proj", RECUR_CHANNELS), \
    SH_MAMBA_PART(A, stem "in_proj", RECUR_HEADS), SH_MAMBA_CONV(stem, CHANNELS), SH_MAMBA_OUT(stem), \
    SH_VECTOR(RECUR_LOG_A, stem "A_log", RECUR_HEADS, 0, 0), \
    SH_VECTOR(RECUR_STEP, stem "dt_bias", RECUR_HEADS, 0, 0), SH_VECTOR(RECUR_SKIP, stem "D", RECUR_HEADS, 0, 0), \
    SH_VECTOR(RECUR_NORM_W, stem "norm.weight", RECUR_VALUES, 0, 0)
#define SH_MAMBA_2_START \
    .recurrent = {.kind = SH_STATE_SPACE, .n_v = 128, .n_k = 1, .d_k = 256, .kernel = 4, .normed = 1}
#define SH_BAMBA_PARAMS \
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "final_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "pre_ff_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION, \
    SH_MAMBA_2(SH_LAYER "mamba."), SH_DENSE(GATE, "feed_forward.gate_proj", FF, MODEL), \
    SH_DENSE(UP, "feed_forward.up_proj", FF, MODEL), SH_DENSE(DOWN, "feed_forward.down_proj", MODEL, FF)
int sh_mamba_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);
/* As sh_mamba_shape, for heads that are together `inner` wide; `key` gives this width. */
int sh_mamba_wide(struct sh_arch *a, const struct sh_config *c, long long inner, const char *key, struct sh_err *e);
/* The limits of the steps from "time_step_limit"; without this key there are none. */
int sh_mamba_limits(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);

/* Qwen3-Next and its descendants (family_qwen3_next.c): attention whose output has a gate (a tensor holds each query
 * head's rows of queries, then of its gate); the gated delta rule, with its input's products in tensors of their own;
 * experts, published as stacks or one by one, and one for all tokens. */
#define SH_GATED_ATTENTION \
    SH_LINEAR(Q, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, SH_BY_HEAD), \
    SH_LINEAR(ATTN_GATE, SH_LAYER "self_attn.q_proj", Q, MODEL, SH_HAS_BIAS, SH_BY_HEAD), \
    SH_LINEAR(K, SH_LAYER "self_attn.k_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(V, SH_LAYER "self_attn.v_proj", KV, MODEL, SH_HAS_BIAS, 0), \
    SH_LINEAR(O, SH_LAYER "self_attn.o_proj", MODEL, Q, SH_HAS_OUT_BIAS, 0)
#define SH_DELTA_IN(part, tensor, out, how) \
    SH_MATRIX(RECUR_##part##_W, SH_LAYER "linear_attn." tensor ".weight", out, MODEL, how)
#define SH_DELTA_NORMED(norm_name) \
    SH_MATRIX(RECUR_CONV, SH_LAYER "linear_attn.conv1d.weight", RECUR_CHANNELS, RECUR_KERNEL, 0), \
    SH_VECTOR(RECUR_LOG_A, SH_LAYER "linear_attn.A_log", RECUR_HEADS, 0, 0), \
    SH_VECTOR(RECUR_STEP, SH_LAYER "linear_attn.dt_bias", RECUR_HEADS, 0, 0), \
    SH_VECTOR(RECUR_NORM_W, SH_LAYER "linear_attn." norm_name ".weight", RECUR_HEAD, 0, 0), \
    SH_MATRIX(RECUR_OUT_W, SH_LAYER "linear_attn.out_proj.weight", MODEL, RECUR_VALUES, 0)
#define SH_DELTA_APART \
    SH_DELTA_NORMED("norm"), SH_DELTA_IN(Q, "in_proj_qkv", RECUR_KEYS, 0), \
    SH_DELTA_IN(K, "in_proj_qkv", RECUR_KEYS, 0), SH_DELTA_IN(V, "in_proj_qkv", RECUR_VALUES, 0), \
    SH_DELTA_IN(Z, "in_proj_z", RECUR_VALUES, 0), SH_DELTA_IN(B, "in_proj_b", RECUR_HEADS, 0), \
    SH_DELTA_IN(A, "in_proj_a", RECUR_HEADS, 0)
#define SH_QWEN_STACKS \
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0), \
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0)
#define SH_QWEN_SHARED \
    SH_ROUTER("mlp.gate.weight"), SH_SHARED("mlp.shared_expert"), \
    SH_SHARED_PART(SCALE, "mlp.shared_expert_gate.weight", ONE_ROW, MODEL)

/* Keys of DeepSeek's counts, with the names in Kimi Linear's and Ling's files besides DeepSeek's own. */
#define SH_KIMI_MIXTURE \
    SH_DEEPSEEK_MIXTURE, SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"), \
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_token", "num_experts_per_tok"), \
    SH_COUNT_KEY(mix.groups, 1e5, "num_expert_group", "n_group"), \
    SH_FLAG_KEY(SH_MIX_NORMED, "moe_renormalize", "norm_topk_prob"), \
    SH_COUNT_KEY(max_pos, 1e8, "model_max_length", "max_position_embeddings")
/* Kimi Delta Attention (family_kimi_linear.c): its convolutions and the other tensors that all its files have. */
#define SH_KDA_IN(part, tensor, out) SH_MATRIX(RECUR_##part##_W, tensor ".weight", out, MODEL, 0)
#define SH_KDA(stem, out) \
    SH_KDA_IN(Q, stem "q_proj", RECUR_KEYS), SH_KDA_IN(K, stem "k_proj", RECUR_KEYS), \
    SH_KDA_IN(V, stem "v_proj", RECUR_VALUES), SH_KDA_IN(B, stem "b_proj", RECUR_HEADS), \
    SH_MATRIX(RECUR_CONV, stem "q_conv1d.weight", RECUR_KEYS, RECUR_KERNEL, 0), \
    SH_MATRIX(RECUR_CONV_K, stem "k_conv1d.weight", RECUR_KEYS, RECUR_KERNEL, 0), \
    SH_MATRIX(RECUR_CONV_V, stem "v_conv1d.weight", RECUR_VALUES, RECUR_KERNEL, 0), \
    SH_VECTOR(RECUR_LOG_A, stem "A_log", RECUR_HEADS, 0, 0), \
    SH_VECTOR(RECUR_STEP, stem "dt_bias", RECUR_DECAYS, 0, 0), \
    SH_VECTOR(RECUR_NORM_W, stem "o_norm.weight", RECUR_HEAD, 0, 0), \
    SH_MATRIX(RECUR_OUT_W, stem out ".weight", MODEL, RECUR_VALUES, 0)
#define SH_KDA_RANKED(part, in, out, wide) \
    SH_MATRIX(RECUR_##part##_IN_W, in ".weight", RECUR_GATE, MODEL, 0), \
    SH_MATRIX(RECUR_##part##_W, out ".weight", wide, RECUR_GATE, 0)
/* Equal numbers and widths of heads of queries, keys and values, and a decay for each element of a key. */
sh_shape sh_kda_shape;
/* Hyper-connections (hyper.c): the tensors of the output head (rows STREAMS) or of a block (rows HYPER) whose names
 * start with `stem`, those of a block with its factors; checks of the number of streams. */
#define SH_HYPER(part, stem, rows) \
    SH_MATRIX(HYPER_##part##_W, stem "fn", rows, HYPER_IN, 0), SH_VECTOR(HYPER_##part##_BASE, stem "base", rows, 0, 0)
#define SH_HYPER_OF(part, stem) SH_HYPER(part, SH_LAYER stem, HYPER), \
    SH_VECTOR(HYPER_##part##_SCALE, SH_LAYER stem "scale", HYPER_SCALES, 0, 0)
sh_shape sh_hyper_shape;
/* The limits that swiglu_limit (absent: 10) sets for blocks of this kind, in all layers. */
int sh_swiglu_limit(struct sh_arch *a, const struct sh_config *c, enum sh_limited what, struct sh_err *e);
/* The shared experts of a mixture with SH_KIMI_MIXTURE's keys. */
sh_shape sh_kimi_shared;

/* Gemma 3n and 4: a layer's own embedding of each token. */
#define SH_OWN_EMBEDDINGS \
    SH_MATRIX(OWN_EMBED, "embed_tokens_per_layer.weight", OWN_ROWS, OWN_ALL, 0), \
    SH_MATRIX(OWN_PROJ, "per_layer_model_projection.weight", OWN_ALL, MODEL, 0), \
    SH_NORM_WEIGHT(OWN_NORM, "per_layer_projection_norm.weight", OWN, 0), \
    SH_MATRIX(OWN_GATE_W, SH_LAYER "per_layer_input_gate.weight", OWN, MODEL, 0), \
    SH_MATRIX(OWN_OUT_W, SH_LAYER "per_layer_projection.weight", MODEL, OWN, 0), \
    SH_NORM_WEIGHT(OWN_POST, SH_LAYER "post_per_layer_input_norm.weight", MODEL, 0)
#define SH_GEMMA_NORMS \
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_attention_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "pre_feedforward_layernorm.weight", MODEL, 0), \
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_feedforward_layernorm.weight", MODEL, 0)
/* num_kv_shared_layers: how many of the last layers use keys and values of earlier ones. */
int sh_gemma_borrows(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e);
/* A cap that is null means none; if the key is absent, the cap is the family's. */
int sh_gemma_cap(const struct sh_config *c, const char *key, float *cap, struct sh_err *e);

/* Layer norms and rotary positions. */
#define SH_LAYER_NORM_START SH_LAYER_NORM_START_WITH(10000)
#define SH_LAYER_NORM_START_WITH(base_of_rotation) \
    .norm = SH_NORM_LAYER, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f, \
    .rope = {.base = base_of_rotation}

/* Granite's factors, and how they are completed (family_granite.c). */
#define SH_GRANITE_FACTORS \
    SH_REAL_KEY(scale, 1e6, "attention_multiplier"), SH_REAL_KEY(embed_scale, 1e6, "embedding_multiplier"), \
    SH_REAL_KEY(residual_scale, 1e6, "residual_multiplier"), SH_REAL_KEY(logit_scale, 1e6, "logits_scaling")
int sh_granite_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);

/* Rules for windows (config.h): all layers but the last of every `period`; all from `first` on. */
int sh_but_each(int layer, int period);
int sh_from_layer(int layer, int first);

/* The tables that GPT-2 and its relatives share. */
#define SH_GPT_FLAGS \
    (SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM)

/* A feed-forward block of four times the width by default (family_gpt2.c); a window in every layer if sliding_window is
 * set (family_llama.c). */
sh_shape sh_four_wide, sh_window_shape;

#endif
