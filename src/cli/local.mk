# SPDX-License-Identifier: Apache-2.0
# The program: options, help, and what commands print. One file per subcommand.
noinst_LIBRARIES += libcli.a
libcli_a_SOURCES = \
	%D%/args.c %D%/args.h \
	%D%/capacity_own.c \
	%D%/capacity_rows.c \
	%D%/capacity_show.c %D%/capacity_show.h \
	%D%/cmd_calibrate.c \
	%D%/cmd_capacity.c \
	%D%/cmd_demo.c \
	%D%/cmd_drift.c \
	%D%/cmd_eval.c \
	%D%/cmd_export.c \
	%D%/cmd_generate.c \
	%D%/cmd_help.c \
	%D%/cmd_import.c \
	%D%/cmd_info.c \
	%D%/cmd_merge.c \
	%D%/cmd_persistence.c \
	%D%/cmd_plan.c \
	%D%/cmd_plot.c \
	%D%/cmd_recommend.c \
	%D%/cmd_repetition.c \
	%D%/cmd_replay.c \
	%D%/cmd_report.c \
	%D%/cmd_reproduce.c \
	%D%/cmd_simulate.c \
	%D%/cmd_study.c \
	%D%/cmd_theory.c \
	%D%/cmd_trace.c \
	%D%/cmd_verify.c \
	%D%/commands.c %D%/commands.h \
	%D%/completion.c \
	%D%/generate_show.c \
	%D%/generate_job.h \
	%D%/info.h \
	%D%/info_backends.c \
	%D%/info_catalog.c \
	%D%/info_families.c \
	%D%/info_policies.c \
	%D%/man.c \
	%D%/options.c %D%/options.h \
	%D%/paths.c %D%/paths.h \
	%D%/plan_show.c %D%/plan_show.h \
	%D%/simulate_closed_show.c %D%/simulate_closed_show.h \
	%D%/steps.c %D%/steps.h
bin_PROGRAMS += shears
shears_SOURCES = src/main.c
app_libs = libreport.a libapp.a libjobs.a libranks.a libtracer.a libengine.a libsimulate.a libclock.a libcapacity.a libreplay.a \
	liballocator.a libpolicy.a libtheory.a libplots.a libtokenizer.a libmodel.a libtraces.a libstats.a librows.a
shears_LDADD = libcli.a libdemo.a $(app_libs) $(kernel_libs) $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) \
	$(UTF8PROC_LIBS) -lpthread -lm
