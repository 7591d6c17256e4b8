/* SPDX-License-Identifier: Apache-2.0 */
/* The newer families' checkpoints, folder by folder: X(family, folder). The last few, which
 * tests/oracle/families_modern.py and families_plain.py make, are in tests/golden/checkpoints/modern, the others in
 * the shared fixtures. */
#ifndef TESTS_UNIT_MODERN_H
#define TESTS_UNIT_MODERN_H

#include <string.h>

#define MODERN(X) \
    X(granite, granite) X(cohere, cohere) X(cohere, cohere_qk_norm) X(cohere2, cohere2) X(olmo, olmo) \
    X(olmo2, olmo2) X(olmo3, olmo3) X(smollm3, smollm3) X(stablelm, stablelm) X(stablelm, stablelm_parallel) \
    X(starcoder2, starcoder2) X(phi, phi) X(gptj, gptj) X(codegen, codegen) X(gemma, gemma) X(glm, glm) \
    X(glm4, glm4) X(ernie4_5, ernie4_5) X(exaone4, exaone4) X(exaone4, exaone4_full) \
    X(hunyuan_v1_dense, hunyuan_v1_dense) X(seed_oss, seed_oss) X(arcee, arcee) X(nemotron, nemotron) \
    X(falcon, falcon) X(falcon, falcon_new) X(mpt, mpt) X(mpt, mpt_clip) X(gpt_bigcode, gpt_bigcode) \
    X(persimmon, persimmon) X(xglm, xglm) X(biogpt, biogpt) X(helium, helium) X(apertus, apertus) \
    X(ministral, ministral) X(ministral3, ministral3) X(ministral3, ministral3_nested) X(nanochat, nanochat) \
    X(bitnet, bitnet) X(vaultgemma, vaultgemma) \
    X(mixtral, mixtral) X(mixtral, mixtral_window) X(qwen2_moe, qwen2_moe) X(qwen2_moe, qwen2_moe_sparse_step) \
    X(qwen3_moe, qwen3_moe) X(qwen3_moe, qwen3_moe_mixed) X(olmoe, olmoe) X(phimoe, phimoe) \
    X(granitemoe, granitemoe) X(ernie4_5_moe, ernie4_5_moe) X(glm4_moe, glm4_moe) X(minimax_m2, minimax_m2) \
    X(dots1, dots1) X(flex_olmo, flex_olmo) X(afmoe, afmoe) \
    X(deepseek, deepseek_v2_lite) X(deepseek, deepseek_v2) X(deepseek, deepseek_v3) X(deepseek, deepseek_v3_noyarn) \
    X(youtu, youtu) X(gpt_oss, gpt_oss) X(gpt_oss, gpt_oss_mxfp4) X(llama4, llama4_text) \
    X(llama4, llama4_text_interleaved) \
    X(llama4, llama4_nested) X(falcon, falcon_rw) \
    X(qwen3_next, qwen3_next) X(qwen3_5, qwen3_5_text) X(qwen3_5, qwen3_5_nested) \
    X(gemma3n, gemma3n_text) X(gemma3n, gemma3n_nested) X(gemma4, gemma4_text) X(gemma4, gemma4_text_moe) \
    X(gemma4, gemma4_nested) X(jetmoe, jetmoe) \
    X(lfm2, lfm2) X(lfm2, lfm2_bias) X(lfm2_moe, lfm2_moe) X(granitemoehybrid, granitemoehybrid) \
    X(granitemoehybrid, granitemoehybrid_plain) X(bamba, bamba) X(jamba, jamba) X(nemotron_h, nemotron_h) \
    X(cwm, cwm) X(solar_open, solar_open) X(hunyuan_v1_moe, hunyuan_v1_moe) X(glm4_moe_lite, glm4_moe_lite) \
    X(exaone_moe, exaone_moe) X(granitemoe, granitemoeshared) X(exaone, exaone) X(hyperclovax, hyperclovax) \
    X(minicpm3, minicpm3) X(nemotron_h, nemotron_h_moe) X(mimo, mimo) \
    X(olmo3, olmo3_by_kind) X(gemma4, gemma4_kv_heads) X(deepseek, deepseek_wide_values) X(dots1, dots1_window) \
    X(smollm3, smollm3_window) X(qwen2_moe, qwen2_moe_window) \
    X(internlm3, internlm3) X(iquestcoder, iquestcoder) X(jais2, jais2) X(sarvam_moe, sarvam_moe) \
    X(sarvam_mla, sarvam_mla) X(axk1, axk1) X(kolibri1, kolibri1) X(mellum, mellum) X(hy_v3, hy_v3) \
    X(granite_swa, granite_swa) X(granitemoe_swa, granitemoe_swa) X(cohere2_moe, cohere2_moe) \
    X(cohere2_moe, cohere2_moe_sigmoid) X(deepseek_v32, deepseek_v32) X(glm_moe_dsa, glm_moe_dsa) \
    X(lfm3, lfm3) X(laguna, laguna) X(laguna, laguna_elements) \
    X(mellum, mellum_experts) X(granitemoe_swa, granitemoe_swa_still) X(deepseek_v32, deepseek_v32_plain) \
    X(qwen3_5_moe, qwen3_5_moe) X(gpt_oss, sinks) X(deepseek, latent) X(llama4, chunks) \
    X(falcon_h1, falcon_h1) X(falcon_h1, falcon_h1_gated_first) X(falcon_h1, falcon_h1_plain) \
    X(olmo_hybrid, olmo_hybrid) X(olmo_hybrid, olmo_hybrid_rope) \
    X(kimi_linear, kimi_linear) X(kimi_linear, kimi_linear_groups) \
    X(bailing_hybrid, bailing_hybrid) X(bailing_hybrid, bailing_hybrid_unbounded) \
    X(longcat_flash, longcat_flash) X(longcat_flash, longcat_flash_yarn) \
    X(axk2, axk2) X(axk2, axk2_groups) X(minimax, minimax) X(minimax, minimax_plain) \
    X(zamba2, zamba2) X(zamba2, zamba2_plain) \
    X(mimo_v2, mimo_v2) X(mimo_v2, mimo_v2_published) \
    X(gemma4_unified, gemma4_unified) X(gemma4_unified, gemma4_unified_lent) \
    X(diffllama, diffllama) X(diffllama, diffllama_plain) X(apertus1p5, apertus1p5) \
    X(step3p7, step3p7) X(step3p7, step3p7_published) \
    X(hy_v4, hy_v4) X(hy_v4, hy_v4_groups) X(hy_v4_vl, hy_v4_vl) \
    X(minimax_m3, minimax_m3) X(minimax_m3, minimax_m3_text) \
    X(doge, doge) X(doge, doge_window) \
    X(llama, llava) X(llama, idefics3) X(mistral, mistral3) X(deepseek, kimi_k25) X(qwen2_vl, qwen2_vl) \
    X(qwen2_vl, qwen2_5_vl) X(qwen3_vl, qwen3_vl) X(qwen3_vl_moe, qwen3_vl_moe) X(glm4v, glm4v) \
    X(glm4v_moe, glm4v_moe) X(qwen2_5_omni, qwen2_5_omni) X(qwen3_omni_moe, qwen3_omni_moe) \
    X(cohere2, cohere2_vision) X(qwen2, internvl_chat) X(mllama, mllama) \
    X(mistral4, mistral4) X(mistral4, mistral4_experts) X(aria, aria) X(internlm2, internlm2) \
    X(ernie4_5_vl_moe, ernie4_5_vl_moe) X(glm_ocr, glm_ocr) X(paddleocr_vl, paddleocr_vl) \
    X(minicpm, minicpm) X(minicpm, minicpm_long) X(minicpm, minicpm_experts) X(orion, orion) X(xverse, xverse) \
    X(chatglm, chatglm) X(qwen, qwen) X(bailing_moe, bailing_moe) X(bailing_moe, bailing_moe_v2) \
    X(baichuan, baichuan) X(baichuan, baichuan_alibi) X(baichuan, baichuan_7b) X(plm, plm) X(dbrx, dbrx) \
    X(smallthinker, smallthinker) X(smallthinker, smallthinker_plain) \
    X(minicpm3, minicpm3_gguf) X(deepseek_moe, deepseek_moe) X(arctic, arctic) \
    X(smallthinker, smallthinker_loud) X(deepseek_moe, deepseek_moe_one) \
    X(openelm, openelm) X(openelm, openelm_unlisted) X(openelm, openelm_even) \
    X(deci, deci) X(deci, deci_matrices) X(deci, deci_plain) X(deci, deci_7b) \
    X(laguna, laguna_heads) X(laguna, laguna_heads_each) \
    X(step3p7, step3p7_heads) X(step3p7, step3p7_heads_published) \
    X(nemotron_h, nemotron_h_latent) X(glm5_next, glm5_next) X(glm5_next, glm5_next_published) \
    X(mistral_large4, mistral_large4) X(mistral_large4, mistral_large4_shared) \
    X(flint, flint) X(flint, flint_bias) X(phi4_multimodal, phi4_multimodal) \
    X(phi4_multimodal, phi4_multimodal_published) X(lara_mini, lara_mini) X(lara_mini, lara_mini_untied) \
    X(cohere_compass, cohere_compass) X(cohere_compass, cohere_compass_vision) \
    X(modernbert_decoder, modernbert_decoder) X(modernbert_decoder, modernbert_decoder_biases) \
    X(dory, dory) X(dory, dory_published) X(recurrent_gemma, recurrent_gemma) \
    X(recurrent_gemma, recurrent_gemma_wide) X(molmo2, molmo2) X(molmo2, molmo2_olmo) \
    X(openai_gpt, openai_gpt) X(ctrl, ctrl) X(qwen4_exp, qwen4_exp) \
    X(qwen4_exp, qwen4_exp_text) X(emu3, emu3) X(emu3, emu3_vision) X(chameleon, chameleon) \
    X(chameleon, chameleon_swin) X(gpt_neox_japanese, gpt_neox_japanese) \
    X(gpt_neox_japanese, gpt_neox_japanese_part) X(cosmos3_edge, cosmos3_edge) \
    X(cosmos3_edge, cosmos3_edge_names) X(kosmos2, kosmos2) X(kosmos2, kosmos2_pad) \
    X(hunyuan_vl, hunyuan_vl) X(hunyuan_vl, hunyuan_vl_published) \
    X(deepseek_ocr2, deepseek_ocr2) X(deepseek_ocr2, deepseek_ocr2_groups) X(unlimited_ocr, unlimited_ocr) \
    X(granite_docling, granite_docling) X(granite_docling, granite_docling_untied) X(dbrx, dbrx_saved) \
    X(muse_glimmer, muse_glimmer) X(muse_glimmer, muse_glimmer_mixed)

/* Is the family among them? */
static inline int is_modern(const char *family)
{
#define MODERN_SAME(name, folder) || !strcmp(family, #name)
    return 0 MODERN(MODERN_SAME);
#undef MODERN_SAME
}

#endif
