/* SPDX-License-Identifier: Apache-2.0 */
/* See tap.h. CUnit runs the tests; its handler after each test prints the TAP line. */
#include "tests/tap.h"

#include <CUnit/TestRun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int n_done, n_bad;
static char skip_reason[256];

static void after_test(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
    (void)suite;
    n_done++;
    if (failure) {
        n_bad++;
        printf("not ok %d - %s\n", n_done, test->pName);
        for (const CU_FailureRecord *f = failure; f; f = f->pNext)
            printf("# %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
    } else if (skip_reason[0]) {
        printf("ok %d - %s # SKIP %s\n", n_done, test->pName, skip_reason);
    } else {
        printf("ok %d - %s\n", n_done, test->pName);
    }
    skip_reason[0] = '\0';
    fflush(stdout);
}

void tap_skip(const char *reason)
{
    snprintf(skip_reason, sizeof skip_reason, "%s", reason);
}

static void not_asked_for(void)
{
    tap_skip("SH_TEST_ONLY names others");
}

int tap_run(const char *suite, const struct tap_test *tests)
{
    const char *only = getenv("SH_TEST_ONLY");
    int n = 0;
    while (tests[n].name)
        n++;
    printf("1..%d\n", n);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 99;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    for (int i = 0; i < n; i++)
        CU_add_test(s, tests[i].name, !only || strstr(tests[i].name, only) ? tests[i].run : not_asked_for);
    CU_set_test_complete_handler(after_test);
    CU_run_all_tests();
    CU_cleanup_registry();
    return n_bad || n_done != n;
}

int tap_says(const char *message, const char *part)
{
    if (strstr(message, part))
        return 1;
    printf("# expected \"%s\" in \"%s\"\n", part, message);
    return 0;
}

static const char *find(const char *folder_variable, const char *fallback, const char *name)
{
    static char path[4096];
    const char *folder = getenv(folder_variable);
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : fallback, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *tap_golden(const char *name)
{
    return find("SH_GOLDEN", "tests/golden", name);
}

const char *tap_fixture(const char *name)
{
    return find("SH_FIXTURES", "../shared/fixtures", name);
}
