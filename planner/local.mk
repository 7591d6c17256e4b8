# SPDX-License-Identifier: Apache-2.0
# What follows from recorded attention; pure arithmetic, no I/O.
noinst_LIBRARIES += libplanner.a
libplanner_a_SOURCES = \
	%D%/persistence.c %D%/persistence.h

# Eviction: policies, what they keep, and replay over recorded rows. Its loops run over every score of
# a trace for every policy and budget; sums keep their order, so that they are the same everywhere.
noinst_LIBRARIES += libreplay.a
libreplay_a_SOURCES = \
	%D%/kept.c %D%/kept.h \
	%D%/least.c %D%/least.h \
	%D%/output_error.c %D%/output_error.h \
	%D%/policies.h \
	%D%/policy.c %D%/policy.h \
	%D%/policy_full.c \
	%D%/policy_h2o.c \
	%D%/policy_random.c \
	%D%/policy_scissorhands.c \
	%D%/policy_streaming.c \
	%D%/policy_tova.c \
	%D%/policy_window.c \
	%D%/replay.c %D%/replay.h \
	%D%/replay_row.c %D%/replay_row.h
libreplay_a_CFLAGS = $(AM_CFLAGS) -ftree-vectorize -fvect-cost-model=dynamic \
	-fno-math-errno -fno-trapping-math -ffp-contract=off
