/* SPDX-License-Identifier: Apache-2.0 */
/* See device_policies.h. */
#include "tests/unit/device_policies.h"

#include <stdio.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "tests/tap.h"

/* The host keeps their caches. */
static const char *const on_host[] = {"random", "knorm", "observed", "vatp", "tova", "roco", "scissorhands-released",
                                      "reservoir", "keyformer", "snapkv", "expected", "keydiff", "lagkv", "caote",
                                      "r-kv", "oracle", "oracle-readmit"};
enum { N_ON_HOST = sizeof on_host / sizeof *on_host };

static int is_among(const char *name, const char *const *given, int n)
{
    size_t length = strlen(name);
    for (int i = 0; i < n; i++)
        if (!strncmp(given[i], name, length) && (!given[i][length] || given[i][length] == ':'))
            return 1;
    return 0;
}

void check_device_policies(const char *const *given, int n)
{
    for (int i = 0; sh_policies[i]; i++) {
        const char *name = sh_policies[i]->name;
        int is_known = is_among(name, on_host, N_ON_HOST);
        int ok = sh_policies[i]->device ? !is_known && is_among(name, given, n) : is_known;
        if (!ok)
            printf("# %s %s\n", name, !sh_policies[i]->device ?
                   "has no rule for devices and is not in on_host in tests/unit/device_policies.c" : is_known ?
                   "has a rule for devices and is in on_host in tests/unit/device_policies.c" :
                   "has a rule for devices and no case in this test");
        CU_ASSERT(ok);
    }
}
