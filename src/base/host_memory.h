/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the host's memory is free. */
#ifndef SH_BASE_HOST_MEMORY_H
#define SH_BASE_HOST_MEMORY_H

#include <stddef.h>

/* Bytes that this process can take: the least of what the kernel can give without swapping (MemAvailable of
 * /proc/meminfo; if that is missing, half of all memory), what the limits of its control groups leave (containers, jobs
 * of a cluster), and what its limit on address space leaves. */
size_t sh_host_memory_free(void);

/* The least that a memory limit leaves in the control groups that a file in the format of /proc/self/cgroup names, and
 * in their parents; version 1 (below mount/memory) or 2. File caches can be reclaimed, so they count as free. SIZE_MAX:
 * no limit. */
size_t sh_host_memory_groups(const char *file, const char *mount);

#endif
