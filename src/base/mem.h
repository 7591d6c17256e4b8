/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that never fails: when small allocations fail, a command-line tool can only say so and stop, so these never
 * return NULL. Large buffers whose size comes from user input (hidden states, device memory) are allocated where "does
 * not fit" is an answer. Free with free(). */
#ifndef SH_BASE_MEM_H
#define SH_BASE_MEM_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes);              /* zeroed; dies on overflow of count * bytes */
void *xreallocarray(void *at, size_t count, size_t bytes);
void *xaligned(size_t bytes);                           /* 64-byte aligned, not zeroed               */
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* getline for foreign files: a line of more than `most` bytes is cut after most + 1, so that an endless one (a device,
 * a pipe) does not fill the memory. */
ssize_t xgetline(char **line, size_t *room, size_t most, FILE *from);

/* realpath; NULL and errno if there is no such file. */
char *xrealpath(const char *path);

/* open_memstream, and its end: *text is then complete; free() it. */
FILE *xmemstream(char **text, size_t *bytes);
void xmemclose(FILE *to, char *const *text, const size_t *bytes);

/* Says that this many bytes could not be allocated, and ends the program. */
void sh_no_memory(size_t bytes) __attribute__((noreturn));

/* *out = a * b (a + b); -1 on overflow. For sizes from foreign files. */
int sh_mul(size_t a, size_t b, size_t *out);
int sh_add(size_t a, size_t b, size_t *out);

/* ---- how much of the host's memory is free (host_memory.c) ---- */

/* Bytes that this process can take: the least of what the kernel can give without swapping (MemAvailable of
 * /proc/meminfo; if that is missing, half of all memory), what the limits of its control groups leave (containers, jobs
 * of a cluster), and what its limit on address space leaves. */
size_t sh_host_memory_free(void);

/* The same where `mapped` bytes of what will be taken are files that are mapped: their address space is taken. */
size_t sh_host_memory_free_with(size_t mapped);

/* The least that a memory limit leaves in the control groups that a file in the format of /proc/self/cgroup names, and
 * in their parents; version 1 (below mount/memory) or 2. File caches can be reclaimed, so they count as free. SIZE_MAX:
 * no limit. */
size_t sh_host_memory_groups(const char *file, const char *mount);

#endif
