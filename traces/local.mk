# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += libtraces.a
libtraces_a_SOURCES = \
	%D%/codec.c %D%/codec.h \
	%D%/column.c %D%/column.h \
	%D%/db.c %D%/db.h \
	%D%/digest.c %D%/digest.h \
	%D%/log8.c \
	%D%/merge.c %D%/merge.h \
	%D%/merge_match.c \
	%D%/shard.c %D%/shard.h \
	%D%/shard_inventory.c \
	%D%/shard_partial.c \
	%D%/sparse.c \
	%D%/store.c %D%/store.h \
	%D%/store_read.c \
	%D%/trace.c %D%/trace.h \
	%D%/untrusted.c \
	%D%/wait.c \
	%D%/writer.c %D%/writer.h

# schema.sql as one C string
EXTRA_DIST += %D%/schema.sql
BUILT_SOURCES += %D%/schema.inc
CLEANFILES += %D%/schema.inc
%D%/schema.inc: %D%/schema.sql
	$(AM_V_GEN)$(MKDIR_P) %D% && { echo 'static const char sh_schema[] ='; \
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $(srcdir)/%D%/schema.sql; echo ';'; } > $@

traces/db.$(OBJEXT): traces/schema.inc

trace_libs = libtraces.a libbase.a $(SQLITE_LIBS) $(ZSTD_LIBS) -lpthread -lm

# the streaming attention statistics; sums keep their order, so that they are the same everywhere
noinst_LIBRARIES += libstats.a
libstats_a_SOURCES = \
	%D%/stats.c %D%/stats.h %D%/stats_work.h \
	%D%/stats_fold.c \
	%D%/stats_likeness.c \
	%D%/stats_pack.c \
	%D%/stats_spec.c %D%/stats_spec.h
libstats_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off

# The SQL functions, a module that SQLite loads; built without libtool, as a program that is linked shared.
module_PROGRAMS += shears_sql.so
shears_sql_so_SOURCES = %D%/sql_extension.c %D%/codec.c %D%/log8.c \
	%D%/sparse.c %D%/stats.c %D%/stats_fold.c %D%/stats_likeness.c %D%/stats_pack.c %D%/stats_spec.c src/base/err.c \
	src/base/mem.c src/base/row_bits.c \
	src/base/row_figures.c src/base/row_near.c src/base/row_top.c
shears_sql_so_CFLAGS  = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fPIC -fvisibility=hidden
shears_sql_so_LINK    = $(CC) -shared $(SH_SAN_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@
shears_sql_so_LDADD   = $(ZSTD_LIBS) $(JANSSON_LIBS) -lpthread -lm
