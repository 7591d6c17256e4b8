# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	%D%/arch.h \
	%D%/config.c %D%/config.h \
	%D%/embed.c \
	%D%/families.h %D%/family.h %D%/family_opt.c \
	%D%/finite.c \
	%D%/layer.c %D%/layer.h \
	%D%/map.c %D%/map.h \
	%D%/model.c %D%/model.h \
	%D%/random.c %D%/random.h \
	%D%/safetensors.c %D%/safetensors.h
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
