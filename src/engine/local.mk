# SPDX-License-Identifier: Apache-2.0
# Inference under a KV budget. The loops over slots keep the order of their sums, so that every machine
# gets the same.
noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	%D%/cache.c %D%/cache.h \
	%D%/eval.c %D%/eval.h \
	%D%/eval_sums.c %D%/eval_sums.h \
	%D%/quant.c %D%/quant.h \
	%D%/resident.c %D%/resident.h \
	%D%/rows.c %D%/rows.h \
	%D%/session.c %D%/session.h \
	%D%/slots_attend.c %D%/slots_attend.h
libengine_a_CFLAGS = $(AM_CFLAGS) -ftree-vectorize -fvect-cost-model=dynamic \
	-fno-math-errno -fno-trapping-math -ffp-contract=off
