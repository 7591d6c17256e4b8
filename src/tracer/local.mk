# SPDX-License-Identifier: Apache-2.0
# From a model and texts to trace records.
noinst_LIBRARIES += libtracer.a
libtracer_a_SOURCES = \
	%D%/dump.c %D%/dump.h \
	%D%/hidden.c \
	%D%/import.c %D%/import.h \
	%D%/needs.c \
	%D%/packer.c %D%/packer.h \
	%D%/recorder.c %D%/recorder.h \
	%D%/sweep.c %D%/sweep.h \
	%D%/texts.c %D%/texts.h \
	%D%/units.c %D%/units.h
