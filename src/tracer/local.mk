# SPDX-License-Identifier: Apache-2.0
# From a model and texts to trace records.
noinst_LIBRARIES += libtracer.a
libtracer_a_SOURCES = \
	%D%/chunks.c %D%/chunks.h \
	%D%/hidden.c %D%/hidden.h \
	%D%/needs.c \
	%D%/recorder.c %D%/recorder.h \
	%D%/sweep.c %D%/sweep.h \
	%D%/texts.c %D%/texts.h
