/* SPDX-License-Identifier: Apache-2.0 */
/* See mem.h. */
#include "src/base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Other threads may be running, so nothing is torn down except what file.c registered for such an exit. */
void sh_no_memory(size_t bytes)
{
    fprintf(stderr, "shears: out of memory: cannot allocate %zu bytes\n", bytes);
    quick_exit(1);
}

static void *or_die(void *at, size_t bytes)
{
    if (!at && bytes)
        sh_no_memory(bytes);
    return at;
}

void *xmalloc(size_t bytes)
{
    return or_die(malloc(bytes ? bytes : 1), bytes);
}

void *xcalloc(size_t count, size_t bytes)
{
    return or_die(calloc(count ? count : 1, bytes ? bytes : 1), bytes);
}

void *xreallocarray(void *at, size_t count, size_t bytes)
{
    size_t total;
    if (sh_mul(count, bytes, &total))
        sh_no_memory((size_t)-1);
    return or_die(realloc(at, total ? total : 1), total);
}

void *xaligned(size_t bytes)
{
    size_t whole = (bytes + 63) / 64 * 64;
    return or_die(aligned_alloc(64, whole ? whole : 64), bytes);
}

char *xstrdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(xmalloc(bytes), text, bytes);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        sh_no_memory(strlen(format) + 1);
    char *text = xmalloc((size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

ssize_t xgetline(char **line, size_t *room, size_t most, FILE *from)
{
    size_t n = 0;
    for (int c = 0; c != '\n' && n <= most && (c = getc_unlocked(from)) != EOF;) {
        if (n + 2 > *room)
            *line = xreallocarray(*line, *room = *room ? 2 * *room : 128, 1);
        (*line)[n++] = (char)c;
    }
    if (!n || ferror(from))
        return -1;
    (*line)[n] = '\0';
    return (ssize_t)n;
}

char *xrealpath(const char *path)
{
    char *whole = realpath(path, NULL);
    if (!whole && errno == ENOMEM)
        sh_no_memory(strlen(path) + 1);
    return whole;
}

FILE *xmemstream(char **text, size_t *bytes)
{
    FILE *to = open_memstream(text, bytes);
    or_die(to, 1);
    return to;
}

void xmemclose(FILE *to, char *const *text, const size_t *bytes)
{
    int bad = ferror(to);
    if (fclose(to) || bad || !*text)         /* glibc reports a failed last reallocation only by NULL */
        sh_no_memory(*bytes + 1);
}

int sh_mul(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}

int sh_add(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out) ? -1 : 0;
}
