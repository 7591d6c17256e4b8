# SPDX-License-Identifier: Apache-2.0
# The program: one file per subcommand, the only place where all folders meet.
bin_PROGRAMS += shears
shears_SOURCES = \
	src/main.c \
	%D%/allot.c %D%/allot.h \
	%D%/args.c %D%/args.h \
	%D%/backends.c %D%/backends.h \
	%D%/capacity_ask.c %D%/capacity_ask.h \
	%D%/capacity_config.c %D%/capacity_config.h \
	%D%/capacity_names.c %D%/capacity_names.h \
	%D%/capacity_notes.c \
	%D%/capacity_quirks.c \
	%D%/capacity_row.c \
	%D%/capacity_show.c %D%/capacity_show.h \
	%D%/capacity_states.c \
	%D%/capacity_stored.c %D%/capacity_stored.h \
	%D%/cmd_capacity.c \
	%D%/cmd_demo.c \
	%D%/cmd_eval.c \
	%D%/cmd_export.c \
	%D%/cmd_info.c \
	%D%/cmd_persistence.c \
	%D%/cmd_plot.c \
	%D%/cmd_replay.c \
	%D%/cmd_trace.c \
	%D%/cmd_verify.c \
	%D%/commands.c %D%/commands.h \
	%D%/describe.c %D%/describe.h \
	%D%/devices.c %D%/devices.h \
	%D%/eval_dump.c %D%/eval_dump.h \
	%D%/eval_rows.c %D%/eval_rows.h \
	%D%/figure_data.c %D%/figure_data.h \
	%D%/figure_maps.c \
	%D%/gather.c %D%/gather.h \
	%D%/key_profile.c %D%/key_profile.h \
	%D%/head_rows.c %D%/head_rows.h \
	%D%/help.c \
	%D%/replay_rows.c %D%/replay_rows.h \
	%D%/replay_run.c %D%/replay_run.h \
	%D%/runs.c %D%/runs.h \
	%D%/study.c %D%/study.h \
	%D%/text_source.c %D%/text_source.h \
	%D%/vector_set.c %D%/vector_set.h
shears_LDADD = libdemo.a libtracer.a libengine.a libplanner.a libreplay.a libcapacity.a libplots.a libmodel.a libtokenizer.a libtraces.a libstats.a \
	librows.a $(kernel_libs) $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
