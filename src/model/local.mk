# SPDX-License-Identifier: Apache-2.0
# Models: what config.json says, the weights' files, the families, the forward pass.
noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	%D%/arch.c %D%/arch.h \
	%D%/coded.c %D%/coded.h \
	%D%/coded_blocks.c %D%/coded_blocks.h \
	%D%/coded_bnb.c \
	%D%/coded_join.c \
	%D%/facts.h \
	%D%/layout.c \
	%D%/model.c %D%/model.h \
	%D%/model_bind.c \
	%D%/model_bound.h \
	%D%/model_contents.c \
	%D%/model_mapped.c \
	%D%/model_ngrams.c \
	%D%/ngrams.c %D%/ngrams.h \
	%D%/numbers.c \
	%D%/weights.c %D%/weights.h \
	%D%/config/config.c %D%/config/config.h \
	%D%/config/config_blocks.c \
	%D%/config/config_facts.c \
	%D%/config/config_family.c \
	%D%/config/config_modules.c \
	%D%/config/config_quant.c %D%/config/config_quant.h \
	%D%/config/config_quant_files.c %D%/config/config_quant_files.h \
	%D%/config/config_rope.c \
	%D%/config/config_sizes.c \
	%D%/config/module_rules.c %D%/config/module_rules.h \
	%D%/layers/activations.c \
	%D%/layers/attention_experts.c \
	%D%/layers/block_norm.c \
	%D%/layers/differential.c \
	%D%/layers/embed.c \
	%D%/layers/experts.c \
	%D%/layers/head.c \
	%D%/layers/head_temper.c \
	%D%/layers/hyper.c \
	%D%/layers/key_bias.c \
	%D%/layers/latent.c \
	%D%/layers/layer.c %D%/layers/layer.h \
	%D%/layers/layer_parts.h \
	%D%/layers/layer_vectors.c \
	%D%/layers/limits.c \
	%D%/layers/loop.c \
	%D%/layers/mixture.c \
	%D%/layers/ngpt.c \
	%D%/layers/ngrams.c \
	%D%/layers/recurrent.c \
	%D%/layers/rope.c %D%/layers/rope.h \
	%D%/layers/shared_block.c \
	%D%/layers/stream_mixer.c \
	%D%/layers/streams.c \
	%D%/layers/values.c \
	%D%/families/families.h \
	%D%/families/family.h \
	%D%/families/family_afmoe.c \
	%D%/families/family_apertus.c \
	%D%/families/family_arcee.c \
	%D%/families/family_arctic.c \
	%D%/families/family_aria.c \
	%D%/families/family_axk2.c \
	%D%/families/family_baichuan.c \
	%D%/families/family_bailing_hybrid.c \
	%D%/families/family_bailing_moe.c \
	%D%/families/family_bamba.c \
	%D%/families/family_biogpt.c \
	%D%/families/family_bitnet.c \
	%D%/families/family_bloom.c \
	%D%/families/family_chameleon.c \
	%D%/families/family_chatglm.c \
	%D%/families/family_cohere.c \
	%D%/families/family_cwm.c \
	%D%/families/family_dbrx.c \
	%D%/families/family_deci.c \
	%D%/families/family_deepseek.c \
	%D%/families/family_deepseek_moe.c \
	%D%/families/family_deepseek_v4.c \
	%D%/families/family_diffllama.c \
	%D%/families/family_doge.c \
	%D%/families/family_dory.c \
	%D%/families/family_ernie4_5.c \
	%D%/families/family_exaone.c \
	%D%/families/family_exaone4.c \
	%D%/families/family_exaone_moe.c \
	%D%/families/family_falcon.c \
	%D%/families/family_falcon_h1.c \
	%D%/families/family_flint.c \
	%D%/families/family_gemma2.c \
	%D%/families/family_gemma3n.c \
	%D%/families/family_gemma4.c \
	%D%/families/family_glm.c \
	%D%/families/family_glm4_moe.c \
	%D%/families/family_glm4_moe_lite.c \
	%D%/families/family_glm5_next.c \
	%D%/families/family_gpt2.c \
	%D%/families/family_gpt_neo.c \
	%D%/families/family_gpt_neox.c \
	%D%/families/family_gpt_oss.c \
	%D%/families/family_gptj.c \
	%D%/families/family_granite.c \
	%D%/families/family_granite_swa.c \
	%D%/families/family_hunyuan.c \
	%D%/families/family_hunyuan_v1_moe.c \
	%D%/families/family_hy_v3.c \
	%D%/families/family_hy_v4.c \
	%D%/families/family_hyperclovax.c \
	%D%/families/family_internlm2.c \
	%D%/families/family_jamba.c \
	%D%/families/family_jetmoe.c \
	%D%/families/family_kimi_linear.c \
	%D%/families/family_kolibri1.c \
	%D%/families/family_laguna.c \
	%D%/families/family_lfm2.c \
	%D%/families/family_llama.c \
	%D%/families/family_llama4.c \
	%D%/families/family_longcat_flash.c \
	%D%/families/family_mellum.c \
	%D%/families/family_mimo_v2.c \
	%D%/families/family_minicpm.c \
	%D%/families/family_minicpm3.c \
	%D%/families/family_minimax.c \
	%D%/families/family_minimax_m3.c \
	%D%/families/family_ministral.c \
	%D%/families/family_mistral_large4.c \
	%D%/families/family_mixtral.c \
	%D%/families/family_mllama.c \
	%D%/families/family_molmo2.c \
	%D%/families/family_modernbert.c \
	%D%/families/family_mpt.c \
	%D%/families/family_muse.c \
	%D%/families/family_nanochat.c \
	%D%/families/family_nemotron.c \
	%D%/families/family_nemotron_h.c \
	%D%/families/family_olmo.c \
	%D%/families/family_olmo_hybrid.c \
	%D%/families/family_olmoe.c \
	%D%/families/family_openai_gpt.c \
	%D%/families/family_openelm.c \
	%D%/families/family_opt.c \
	%D%/families/family_orion.c \
	%D%/families/family_persimmon.c \
	%D%/families/family_phi.c \
	%D%/families/family_phi3.c \
	%D%/families/family_plm.c \
	%D%/families/family_qwen.c \
	%D%/families/family_qwen3_next.c \
	%D%/families/family_qwen4_exp.c \
	%D%/families/family_qwen_vl.c \
	%D%/families/family_recurrent_gemma.c \
	%D%/families/family_sarvam.c \
	%D%/families/family_smallthinker.c \
	%D%/families/family_smollm3.c \
	%D%/families/family_solar_open.c \
	%D%/families/family_stablelm.c \
	%D%/families/family_starcoder.c \
	%D%/families/family_step3p7.c \
	%D%/families/family_zamba2.c \
	%D%/families/gguf_forms.h \
	%D%/families/gguf_forms_dense.c \
	%D%/families/gguf_forms_experts.c \
	%D%/families/gguf_forms_recurrent.c \
	%D%/families/wrappers.c \
	%D%/files/checkpoint.c %D%/files/checkpoint.h \
	%D%/files/gguf.c %D%/files/gguf.h \
	%D%/files/gguf_by_layer.c \
	%D%/files/gguf_config.c %D%/files/gguf_config.h \
	%D%/files/gguf_family.c \
	%D%/files/gguf_iq.c \
	%D%/files/gguf_items.c \
	%D%/files/gguf_rope.c \
	%D%/files/gguf_scales.c \
	%D%/files/gguf_tensors.c %D%/files/gguf_tensors.h \
	%D%/files/gguf_type.c \
	%D%/files/gguf_value.c \
	%D%/files/map.c %D%/files/map.h \
	%D%/files/npy.c \
	%D%/files/pickle.c %D%/files/pickle.h \
	%D%/files/safetensors.c \
	%D%/files/torch_file.c \
	%D%/files/zip.c %D%/files/zip.h
libmodel_a_CFLAGS  = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS)
