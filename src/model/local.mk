# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	%D%/activations.c \
	%D%/arch.c %D%/arch.h \
	%D%/config.c %D%/config.h %D%/config_rope.c %D%/config_window.c \
	%D%/embed.c \
	%D%/families.h %D%/family.h \
	%D%/family_bloom.c \
	%D%/family_gemma2.c %D%/family_gemma3.c \
	%D%/family_gpt2.c \
	%D%/family_gpt_neo.c \
	%D%/family_gpt_neox.c \
	%D%/family_llama.c \
	%D%/family_mistral.c %D%/family_mixtral.c \
	%D%/family_opt.c \
	%D%/family_phi3.c \
	%D%/family_qwen2.c %D%/family_qwen2_moe.c %D%/family_qwen3.c %D%/family_qwen3_moe.c \
	%D%/finite.c \
	%D%/gguf.c %D%/gguf.h \
	%D%/gguf_config.c %D%/gguf_config.h %D%/gguf_keys.c %D%/gguf_maker.h %D%/gguf_rope.c %D%/gguf_window.c \
	%D%/gguf_family.c %D%/gguf_family.h \
	%D%/gguf_tensors.c %D%/gguf_tensors.h \
	%D%/gguf_type.c %D%/gguf_type.h \
	%D%/gguf_value.c %D%/gguf_value.h \
	%D%/head.c %D%/head.h \
	%D%/layer.c %D%/layer.h \
	%D%/layout.c %D%/layout.h \
	%D%/map.c %D%/map.h \
	%D%/model.c %D%/model.h \
	%D%/npy.c %D%/npy.h \
	%D%/pickle.c %D%/pickle.h %D%/pickle_name.c \
	%D%/prune.c %D%/prune.h \
	%D%/random.c %D%/random.h \
	%D%/rope.c %D%/rope.h \
	%D%/safetensors.c %D%/safetensors.h \
	%D%/shown.h \
	%D%/torch_file.c %D%/torch_file.h \
	%D%/torch_tensor.c %D%/torch_tensor.h \
	%D%/weights.c %D%/weights.h \
	%D%/zip.c %D%/zip.h
libmodel_a_CFLAGS  = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# A tokenizer within a GGUF file is read through libmodel.a, which knows nothing of this library.
noinst_LIBRARIES += libtokenizer.a
libtokenizer_a_SOURCES = \
	%D%/sp_decode.c %D%/sp_decode.h \
	%D%/sp_model.c %D%/sp_model.h \
	%D%/sp_normal.c %D%/sp_normal.h \
	%D%/sp_wire.c %D%/sp_wire.h \
	%D%/tok.h \
	%D%/tok_added.c %D%/tok_added.h \
	%D%/tok_arrays.c %D%/tok_arrays.h \
	%D%/tok_bpe.c %D%/tok_bpe.h %D%/tok_bpe_read.c %D%/tok_bpe_table.c \
	%D%/tok_decode.c %D%/tok_decode.h \
	%D%/tok_gguf.c %D%/tok_gguf.h \
	%D%/tok_gpt2.c \
	%D%/tok_ids.h \
	%D%/tok_json.c %D%/tok_json.h \
	%D%/tok_normal.c %D%/tok_normal.h \
	%D%/tok_open.c \
	%D%/tok_pre.c \
	%D%/tok_queue.c %D%/tok_queue.h \
	%D%/tok_read.c \
	%D%/tok_regex.c %D%/tok_regex.h \
	%D%/tok_ruby.c %D%/tok_ruby.h \
	%D%/tok_scores.c \
	%D%/tok_split.c %D%/tok_split.h \
	%D%/tok_text.c %D%/tok_text.h \
	%D%/tok_unigram.c %D%/tok_unigram.h \
	%D%/tok_vocab.c %D%/tok_vocab.h \
	%D%/tokenizer.c %D%/tokenizer.h
libtokenizer_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
