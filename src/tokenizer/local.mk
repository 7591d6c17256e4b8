# SPDX-License-Identifier: Apache-2.0
# A tokenizer within a GGUF file is read through libmodel.a, which knows nothing of this library.
noinst_LIBRARIES += libtokenizer.a
libtokenizer_a_SOURCES = \
	%D%/sp_decode.c \
	%D%/sp_model.c \
	%D%/sp_normal.c \
	%D%/tok.h \
	%D%/tok_added.c \
	%D%/tok_arrays.c \
	%D%/tok_bpe.c \
	%D%/tok_bpe_read.c \
	%D%/tok_decode.c \
	%D%/tok_gguf.c \
	%D%/tok_folder.c \
	%D%/tok_gpt2.c \
	%D%/tok_json.c %D%/tok_json.h \
	%D%/tok_model.h \
	%D%/tok_normal.c \
	%D%/tok_open.c \
	%D%/tok_pre.c \
	%D%/tok_rank_list.c %D%/tok_rank_list.h \
	%D%/tok_ranks.c \
	%D%/tok_read.c \
	%D%/tok_regex.c %D%/tok_regex.h \
	%D%/tok_ruby.c \
	%D%/tok_split.c \
	%D%/tok_tekken.c \
	%D%/tok_text.c %D%/tok_text.h \
	%D%/tok_unigram.c \
	%D%/tok_vocab.c \
	%D%/tokenizer.c %D%/tokenizer.h
libtokenizer_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
