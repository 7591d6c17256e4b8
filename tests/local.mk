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
	%D%/unit/test_base

tests_unit_test_base_SOURCES = %D%/unit/test_base.c
tests_unit_test_base_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm

check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)
endif
