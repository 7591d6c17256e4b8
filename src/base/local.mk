# SPDX-License-Identifier: Apache-2.0
# What every folder may use; knows nothing of models, traces or GPUs.
noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	%D%/err.c %D%/err.h \
	%D%/interrupt.c %D%/interrupt.h \
	%D%/mem.c %D%/mem.h \
	%D%/num.h \
	%D%/out.c %D%/out.h \
	%D%/progress.c %D%/progress.h \
	%D%/rng.c %D%/rng.h \
	%D%/score.h
