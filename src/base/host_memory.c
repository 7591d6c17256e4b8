/* SPDX-License-Identifier: Apache-2.0 */
/* See host_memory.h. */
#include "src/base/host_memory.h"

#include <stdio.h>
#include <unistd.h>

size_t sh_host_memory_free(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && !kib && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
            kib = 0;
    if (f)
        fclose(f);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return kib ? (size_t)kib << 10 : pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : 0;
}
