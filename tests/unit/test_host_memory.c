/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/host_memory: what the limits of control groups leave, on trees like the kernel's, and of address space. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static const char *folders[] = {"memory", "memory/job", "memory/job/step", "job", "job/step"};
enum { N_FOLDER = sizeof folders / sizeof *folders };

static void begin(void)
{
    for (int i = 0; i < N_FOLDER; i++)
        CU_ASSERT_FATAL(!mkdir(scratch_path(folders[i]), 0700));
}

static void end(void)
{
    static const char *const files[] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max",
                                        "memory.current", "memory.stat"};
    for (int i = N_FOLDER - 1; i >= 0; i--) {
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%s", folders[i], files[k]);
            unlink(scratch_path(name));
        }
        rmdir(scratch_path(folders[i]));
    }
    scratch_clear();
}

static void put(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

static size_t left(const char *groups)
{
    char mount[2048];
    put("groups", groups);
    snprintf(mount, sizeof mount, "%s", scratch_folder());
    return sh_host_memory_groups(scratch_path("groups"), mount);
}

/* The limit of a job binds a step that has none; caches of files are given back; no use is above the limit. */
static void version_2(void)
{
    begin();
    put("job/memory.max", "1000000\n");
    put("job/memory.current", "700000\n");
    put("job/memory.stat", "anon 400000\ninactive_file 150000\nactive_file 50000\nfile 200000\n");
    put("job/step/memory.max", "max\n");
    put("job/step/memory.current", "1\n");
    CU_ASSERT(left("0::/job/step\n") == 500000);
    put("job/step/memory.max", "600000\n");
    put("job/step/memory.current", "580000\n");
    CU_ASSERT(left("0::/job/step\n") == 20000);
    put("job/step/memory.current", "600001\n");
    CU_ASSERT(left("0::/job/step\n") == 0);
    CU_ASSERT(left("0::/job\n") == 500000);
    CU_ASSERT(left("0::/\n") == SIZE_MAX);
    end();
}

/* Below memory/, by names of its own; other controllers' groups do not count. */
static void version_1(void)
{
    begin();
    put("memory/job/memory.limit_in_bytes", "3000000\n");
    put("memory/job/memory.usage_in_bytes", "1000000\n");
    put("memory/job/memory.stat", "inactive_file 9\ntotal_inactive_file 100000\ntotal_active_file 200000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    CU_ASSERT(left("5:cpu,cpuacct:/job\n4:cpuset,memory:/job/step\n0::/\n") == 2300000);
    CU_ASSERT(left("5:cpu,cpuacct:/job\n4:memory:/\n") == 9223372036854771712ULL);
    CU_ASSERT(left("5:cpu,cpuacct:/job\n1:name=memory:/job\n") == SIZE_MAX);
    end();
}

/* A container sees its own group at the root, whatever path its host knows it by. */
static void seen_from_within(void)
{
    begin();
    put("memory.max", "5000\n");
    put("memory.current", "1000\n");
    CU_ASSERT(left("0::/system.slice/elsewhere.scope\n") == 4000);
    CU_ASSERT(left("0::/../../other\n") == 4000);
    CU_ASSERT(left("") == SIZE_MAX);
    CU_ASSERT(left("no groups\n:\n0:memory\n") == SIZE_MAX);
    CU_ASSERT(sh_host_memory_groups("/nowhere/at/all", "/nowhere") == SIZE_MAX);
    unlink(scratch_path("memory.max"));
    unlink(scratch_path("memory.current"));
    end();
}

static void address_space(void)
{
    enum { MORE = 64 << 20 };
    struct rlimit old, tight;
    unsigned long long pages;
    FILE *f = fopen("/proc/self/statm", "r");
    CU_ASSERT_FATAL(f && fscanf(f, "%llu", &pages) == 1 && !fclose(f) && !getrlimit(RLIMIT_AS, &old));
    CU_ASSERT(sh_host_memory_free() > MORE);
    tight = (struct rlimit){(rlim_t)pages * (rlim_t)getpagesize() + (rlim_t)MORE, old.rlim_max};
    CU_ASSERT_FATAL(!setrlimit(RLIMIT_AS, &tight));
    size_t left = sh_host_memory_free();
    CU_ASSERT_FATAL(!setrlimit(RLIMIT_AS, &old));
    CU_ASSERT(left > 0 && left <= MORE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"control groups of version 2: the least of a group and those around it", version_2},
        {"control groups of version 1", version_1},
        {"control groups as a container sees them, and files that are none", seen_from_within},
        {"a limit of address space", address_space},
        {0}};
    return tap_run("host memory", tests);
}
