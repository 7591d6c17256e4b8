# SPDX-License-Identifier: Apache-2.0
# Unit tests (CUnit) link only the libraries that their subject may use; CLI tests drive the program.
TEST_EXTENSIONS = .sh
LOG_DRIVER     = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER  = $(LOG_DRIVER)
SH_LOG_COMPILER = bash
AM_TESTS_ENVIRONMENT = \
	SHEARS='$(abs_top_builddir)/shears'; export SHEARS; \
	SH_TOP='$(abs_top_srcdir)'; export SH_TOP; \
	SH_GOLDEN='$(abs_top_srcdir)/tests/golden'; export SH_GOLDEN; \
	SH_FIXTURES="$${SH_FIXTURES-$(abs_top_srcdir)/../shared/fixtures}"; export SH_FIXTURES;

if HAVE_CUNIT
check_LIBRARIES += libtap.a
libtap_a_SOURCES = %D%/tap.c %D%/tap.h
libtap_a_CFLAGS  = $(AM_CFLAGS) $(CUNIT_CFLAGS)

unit_tests = \
	%D%/unit/test_base \
	%D%/unit/test_stats \
	%D%/unit/test_persistence \
	%D%/unit/test_safetensors \
	%D%/unit/test_model

tests_unit_test_base_SOURCES = %D%/unit/test_base.c
tests_unit_test_base_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm

tests_unit_test_safetensors_SOURCES = %D%/unit/test_safetensors.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_safetensors_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_model_SOURCES = %D%/unit/test_model.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_model_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm

tests_unit_test_tokenizer_SOURCES = %D%/unit/test_tokenizer.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_tokenizer_LDADD   = libtokenizer.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) \
	$(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
tests_unit_test_tokenizer_files_SOURCES = %D%/unit/test_tokenizer_files.c %D%/unit/scratch.c \
	%D%/unit/scratch.h
tests_unit_test_tokenizer_files_LDADD   = $(tests_unit_test_tokenizer_LDADD)

unit_tests += %D%/unit/test_tokenizer %D%/unit/test_tokenizer_files

tests_unit_test_stats_SOURCES = %D%/unit/test_stats.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_stats_LDADD   = libstats.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_persistence_SOURCES = %D%/unit/test_persistence.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_persistence_LDADD   = libplanner.a libstats.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm

tests_unit_test_plots_SOURCES = %D%/unit/test_plots.c %D%/unit/plot_data.c %D%/unit/plot_data.h
tests_unit_test_plots_LDADD   = libplots.a libbase.a libtap.a $(CUNIT_LIBS) -lm

unit_tests += %D%/unit/test_plots

check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)
endif

EXTRA_DIST += %D%/golden/checkpoints %D%/oracle/checkpoint_bytes.py
EXTRA_DIST += %D%/golden/tokenizers
EXTRA_DIST += %D%/golden/persistence %D%/oracle/persistence.py
EXTRA_DIST += %D%/golden/plots

# Tests of the built program.
TESTS      += %D%/cli/bad_input.sh %D%/cli/trace.sh
EXTRA_DIST += %D%/cli/bad_input.sh %D%/cli/trace.sh
EXTRA_DIST += %D%/cli/lib.sh %D%/cli/checkpoint.py %D%/cli/scores.py %D%/cli/vectors.py
TESTS      += %D%/cli/sql.sh %D%/cli/demo.sh
EXTRA_DIST += %D%/cli/sql.sh %D%/cli/demo.sh
