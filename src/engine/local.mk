# SPDX-License-Identifier: Apache-2.0
# Inference under a KV budget. The loops over slots keep the order of their sums, so that every machine
# gets the same.
noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	%D%/block.c \
	%D%/cache.c %D%/cache.h \
	%D%/device_cache.c \
	%D%/drift.c %D%/drift.h \
	%D%/eval.c %D%/eval.h \
	%D%/eval_reading.h \
	%D%/eval_stream.c \
	%D%/eval_sweep.c \
	%D%/eval_sums.c %D%/eval_sums.h \
	%D%/host_cache.c %D%/host_cache.h \
	%D%/positions.c \
	%D%/quant.c \
	%D%/repetition.c %D%/repetition.h \
	%D%/resident.c %D%/resident.h \
	%D%/rows.c %D%/rows.h \
	%D%/rows_f16.c \
	%D%/sampler.c %D%/sampler.h \
	%D%/session.c %D%/session.h \
	%D%/slots_attend.c \
	%D%/states.c %D%/states.h \
	%D%/task.c %D%/task.h \
	%D%/task_prompt.c \
	%D%/task_score.c %D%/task_score.h \
	%D%/tasks.c \
	%D%/text_stream.c %D%/text_stream.h
libengine_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off
