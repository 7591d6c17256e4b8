# SPDX-License-Identifier: Apache-2.0
# The program: one file per subcommand, the only place where all folders meet.
bin_PROGRAMS += shears
shears_SOURCES = \
	src/main.c \
	%D%/args.c %D%/args.h \
	%D%/backends.c %D%/backends.h \
	%D%/cmd_demo.c \
	%D%/cmd_export.c \
	%D%/cmd_info.c \
	%D%/cmd_persistence.c \
	%D%/cmd_plot.c \
	%D%/cmd_trace.c \
	%D%/cmd_verify.c \
	%D%/commands.c %D%/commands.h \
	%D%/describe.c %D%/describe.h \
	%D%/devices.c %D%/devices.h \
	%D%/figure_data.c %D%/figure_data.h \
	%D%/figure_maps.c \
	%D%/gather.c %D%/gather.h \
	%D%/help.c \
	%D%/study.c %D%/study.h
shears_LDADD = libdemo.a libtracer.a libplanner.a libplots.a libmodel.a libtokenizer.a libtraces.a libstats.a \
	librows.a $(kernel_libs) $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
