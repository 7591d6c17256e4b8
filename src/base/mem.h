/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that is always there: a command-line tool that runs out of small memory can do no
 * better than say so and stop, so these never return NULL. Large buffers whose size comes from
 * user input (hidden states, device memory) are not allocated here but where "does not fit" is
 * answered. Free with free(). */
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

/* getline for lines of foreign files: one of more bytes than `most` is cut behind the first of them, so that what has
 * no end (a device, a pipe) does not fill the memory. */
ssize_t xgetline(char **line, size_t *room, size_t most, FILE *from);

/* realpath; NULL and errno: there is nothing of that name. */
char *xrealpath(const char *path);

/* open_memstream, and its end: *text for free(), whole. */
FILE *xmemstream(char **text, size_t *bytes);
void xmemclose(FILE *to, char *const *text, const size_t *bytes);

/* The allocation of this many bytes failed: says so and ends the program. */
void sh_no_memory(size_t bytes) __attribute__((noreturn));

/* *out = a * b (a + b) unless it overflows: then -1. For sizes that come out of foreign files. */
int sh_mul(size_t a, size_t b, size_t *out);
int sh_add(size_t a, size_t b, size_t *out);

#endif
