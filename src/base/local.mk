# SPDX-License-Identifier: Apache-2.0
# What every folder may use; knows nothing of models, traces or GPUs.
noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	%D%/common.h \
	%D%/cpu.c %D%/cpu.h \
	%D%/err.c %D%/err.h \
	%D%/file.c %D%/file.h \
	%D%/host_memory.c \
	%D%/iq_points.c %D%/iq_points.h \
	%D%/json_kind.h \
	%D%/json_python.c %D%/json_python.h \
	%D%/log8.h \
	%D%/mem.c %D%/mem.h \
	%D%/near.c \
	%D%/num.h \
	%D%/out.c %D%/out.h \
	%D%/out_columns.c \
	%D%/out_html.c %D%/out_tree.h \
	%D%/progress.c %D%/progress.h \
	%D%/read_number.c %D%/read_number.h \
	%D%/rng.c %D%/rng.h \
	%D%/shell.c %D%/shell.h \
	%D%/slots_rule.h \
	%D%/stages.c %D%/stages.h \
	%D%/student.c %D%/student.h \
	%D%/team.c %D%/team.h \
	%D%/utf8.h \
	%D%/module_path.c
libbase_a_CFLAGS   = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libbase_a_CPPFLAGS = $(AM_CPPFLAGS) -DSH_BINDIR='"$(bindir)"' -DSH_PKGLIBDIR='"$(pkglibdir)"'

# What runs over every row of attention; sums keep their order, so that they are the same everywhere.
noinst_LIBRARIES += librows.a
librows_a_SOURCES = \
	%D%/clones.h \
	%D%/row_bits.c \
	%D%/row_codes.c %D%/row_codes.h \
	%D%/row_figures.c %D%/row_figures.h \
	%D%/row_lanes.h \
	%D%/row_near.c \
	%D%/row_top.c
librows_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off
