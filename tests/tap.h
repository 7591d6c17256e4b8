/* SPDX-License-Identifier: Apache-2.0 */
/* Runs CUnit suites and reports them as TAP, one line a test, so that `make check` counts tests
 * and a skipped test carries its reason. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <CUnit/CUnit.h>

struct tap_test {
    const char *name;
    void (*run)(void);
};

/* Run the tests, print TAP on stdout; returns the exit status for main(). The list ends with a NULL name. With
 * SH_TEST_ONLY in the environment those are skipped whose names do not contain it. */
int tap_run(const char *suite, const struct tap_test *tests);

/* Called by a running test: it is reported as skipped for this reason, and should return at once. */
void tap_skip(const char *reason);

/* Does a message contain this part? If not, both are printed, so that a failure explains itself. */
int tap_says(const char *message, const char *part);

/* The path of a reference file under tests/golden, or the shared fixture folder when `name` starts
 * with "fixtures/" (NULL when it is not there). Points into a buffer that the next call overwrites. */
const char *tap_golden(const char *name);
const char *tap_fixture(const char *name);

#endif
