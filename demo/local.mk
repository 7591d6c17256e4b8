# SPDX-License-Identifier: Apache-2.0
# The embedded model: files put into the program, and the recipe that made them (run by hand).
noinst_LIBRARIES += libdemo.a
AM_CCASFLAGS = -I$(srcdir)
noinst_LIBRARIES += libnodemo.a
libnodemo_a_SOURCES = %D%/none.c
libdemo_a_SOURCES = %D%/embedded.S %D%/embed.c %D%/embed.h

demo_files = \
	%D%/model/config.json %D%/model/tokenizer.json %D%/model/tokenizer_config.json %D%/model/model.safetensors \
	%D%/text/natural.txt %D%/text/recall.jsonl
EXTRA_DIST += $(demo_files) %D%/text/recall.txt %D%/README.md %D%/train

demo/embedded.$(OBJEXT): $(demo_files)
