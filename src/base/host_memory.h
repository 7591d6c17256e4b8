/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the host's memory is free. */
#ifndef SH_BASE_HOST_MEMORY_H
#define SH_BASE_HOST_MEMORY_H

#include <stddef.h>

/* Bytes that this process can take: what the kernel can give without pushing others out (MemAvailable of
 * /proc/meminfo; where it does not say, half of what is there), what the limits of the process's control groups leave
 * (containers, jobs of a cluster), and what its limit of address space does; the least of them. */
size_t sh_host_memory_free(void);

/* The least that a limit of memory leaves, in the control groups that a file in the format of /proc/self/cgroup names
 * and in those they lie in, of version 1 (below mount/memory) or 2. File caches are given back, so they count as free.
 * SIZE_MAX: no limit. */
size_t sh_host_memory_groups(const char *file, const char *mount);

#endif
