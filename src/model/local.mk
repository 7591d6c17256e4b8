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
	%D%/layer.c %D%/layer.h \
	%D%/layout.c %D%/layout.h \
	%D%/map.c %D%/map.h \
	%D%/model.c %D%/model.h \
	%D%/pickle.c %D%/pickle.h %D%/pickle_name.c \
	%D%/random.c %D%/random.h \
	%D%/rope.c %D%/rope.h \
	%D%/safetensors.c %D%/safetensors.h \
	%D%/shown.h \
	%D%/torch_file.c %D%/torch_file.h \
	%D%/torch_tensor.c %D%/torch_tensor.h \
	%D%/weights.c %D%/weights.h \
	%D%/zip.c %D%/zip.h
libmodel_a_CFLAGS  = $(AM_CFLAGS) $(JANSSON_CFLAGS)

noinst_LIBRARIES += libtokenizer.a
libtokenizer_a_SOURCES = \
	%D%/tok.h \
	%D%/tok_added.c %D%/tok_added.h \
	%D%/tok_bpe.c %D%/tok_bpe.h %D%/tok_bpe_read.c \
	%D%/tok_decode.c %D%/tok_decode.h \
	%D%/tok_gpt2.c \
	%D%/tok_json.c %D%/tok_json.h \
	%D%/tok_normal.c %D%/tok_normal.h \
	%D%/tok_read.c \
	%D%/tok_regex.c %D%/tok_regex.h \
	%D%/tok_ruby.c %D%/tok_ruby.h \
	%D%/tok_split.c %D%/tok_split.h \
	%D%/tok_text.c %D%/tok_text.h \
	%D%/tok_vocab.c %D%/tok_vocab.h \
	%D%/tokenizer.c %D%/tokenizer.h
libtokenizer_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
