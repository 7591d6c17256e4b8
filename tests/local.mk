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

tests_unit_test_backend_SOURCES = %D%/unit/test_backend.c %D%/unit/variants.c %D%/unit/variants.h
tests_unit_test_backend_LDADD   = $(kernel_libs) libtap.a $(CUNIT_LIBS) -lm
tests_unit_test_attend_SOURCES = %D%/unit/test_attend.c %D%/unit/variants.c %D%/unit/variants.h
tests_unit_test_attend_LDADD   = $(kernel_libs) libtap.a $(CUNIT_LIBS) -lpthread -lm
tests_unit_test_codec_SOURCES = %D%/unit/test_codec.c %D%/unit/sparse_blob.c %D%/unit/sparse_blob.h
tests_unit_test_codec_LDADD   = libtraces.a libbase.a libtap.a $(CUNIT_LIBS) $(ZSTD_LIBS) -lpthread -lm
tests_unit_test_store_SOURCES = %D%/unit/test_store.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_store_LDADD   = libtap.a $(trace_libs) $(CUNIT_LIBS)
tests_unit_test_forward_SOURCES = %D%/unit/test_forward.c %D%/unit/reference.c %D%/unit/reference.h
tests_unit_test_forward_LDADD   = libmodel.a libtap.a $(kernel_libs) $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_texts_SOURCES = %D%/unit/test_texts.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_texts_LDADD   = libtracer.a libtokenizer.a libtraces.a libbase.a libtap.a $(CUNIT_LIBS) \
	$(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm

unit_tests += %D%/unit/test_backend %D%/unit/test_attend %D%/unit/test_codec %D%/unit/test_store \
	%D%/unit/test_forward %D%/unit/test_texts

check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)
endif

EXTRA_DIST += %D%/golden/checkpoints %D%/oracle/checkpoint_bytes.py
EXTRA_DIST += %D%/golden/tokenizers
EXTRA_DIST += %D%/golden/persistence %D%/oracle/persistence.py
EXTRA_DIST += %D%/golden/plots

# Tests of the built program.
TESTS      += %D%/cli/bad_input.sh %D%/cli/trace.sh %D%/cli/persistence.sh %D%/cli/crash.sh %D%/cli/disk_full.sh \
	%D%/cli/damage.sh
EXTRA_DIST += %D%/cli/bad_input.sh %D%/cli/trace.sh %D%/cli/persistence.sh %D%/cli/crash.sh %D%/cli/disk_full.sh \
	%D%/cli/damage.sh
EXTRA_DIST += %D%/cli/lib.sh %D%/cli/checkpoint.py %D%/cli/damage.py %D%/cli/figures.py %D%/cli/scores.py \
	%D%/cli/vectors.py
TESTS      += %D%/cli/sql.sh %D%/cli/demo.sh
EXTRA_DIST += %D%/cli/sql.sh %D%/cli/demo.sh

# Readers of foreign bytes over a kept corpus and seeded mutations of it (tests/fuzz/fuzz.h).
fuzz_tests = \
	%D%/fuzz/fuzz_dense \
	%D%/fuzz/fuzz_sparse \
	%D%/fuzz/fuzz_stats \
	%D%/fuzz/fuzz_safetensors \
	%D%/fuzz/fuzz_index \
	%D%/fuzz/fuzz_config \
	%D%/fuzz/fuzz_model \
	%D%/fuzz/fuzz_tokenizer \
	%D%/fuzz/fuzz_vocab
fuzz_driver = %D%/fuzz/driver.c %D%/fuzz/fuzz.h %D%/fuzz/input.c %D%/unit/scratch.c %D%/unit/scratch.h

tests_fuzz_fuzz_dense_SOURCES       = %D%/fuzz/fuzz_dense.c %D%/fuzz/block.c $(fuzz_driver)
tests_fuzz_fuzz_dense_LDADD         = libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
tests_fuzz_fuzz_sparse_SOURCES      = %D%/fuzz/fuzz_sparse.c %D%/fuzz/block.c $(fuzz_driver) \
	%D%/unit/sparse_blob.c %D%/unit/sparse_blob.h
tests_fuzz_fuzz_sparse_LDADD        = libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
tests_fuzz_fuzz_stats_SOURCES       = %D%/fuzz/fuzz_stats.c $(fuzz_driver)
tests_fuzz_fuzz_stats_LDADD         = libstats.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_safetensors_SOURCES = %D%/fuzz/fuzz_safetensors.c $(fuzz_driver)
tests_fuzz_fuzz_safetensors_LDADD   = libmodel.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_index_SOURCES       = %D%/fuzz/fuzz_index.c $(fuzz_driver)
tests_fuzz_fuzz_index_LDADD         = libmodel.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_config_SOURCES      = %D%/fuzz/fuzz_config.c $(fuzz_driver)
tests_fuzz_fuzz_config_LDADD        = libmodel.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_model_SOURCES       = %D%/fuzz/fuzz_model.c $(fuzz_driver)
tests_fuzz_fuzz_model_LDADD         = libmodel.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_tokenizer_SOURCES   = %D%/fuzz/fuzz_tokenizer.c $(fuzz_driver)
tests_fuzz_fuzz_tokenizer_LDADD     = libtokenizer.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) \
	-lpthread -lm
tests_fuzz_fuzz_vocab_SOURCES       = %D%/fuzz/fuzz_vocab.c $(fuzz_driver)
tests_fuzz_fuzz_vocab_LDADD         = $(tests_fuzz_fuzz_tokenizer_LDADD)

check_PROGRAMS += $(fuzz_tests)
TESTS          += $(fuzz_tests)
EXTRA_DIST     += %D%/fuzz/corpus
