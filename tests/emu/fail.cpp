/* SPDX-License-Identifier: Apache-2.0 */
/* See running.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/emu/running.h"

namespace emu {

Running running;
thread_local bool is_device;

/* A template's name comes with the parentheses of its launch. */
static int name_bytes(const char **name)
{
    int n = 0;
    while ((*name)[n])
        n++;
    if (n > 1 && **name == '(') {
        ++*name;
        n -= 2;
    }
    return n;
}

void fail(const char *format, ...)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "emu: ");
    if (is_device && running.kernel) {
        const char *name = running.kernel;
        int bytes = name_bytes(&name);
        used += snprintf(line + used, sizeof line / 2, "kernel %.*s, block (%u, %u, %u), thread %u: ", bytes, name,
                         blockIdx.x, blockIdx.y, blockIdx.z, running.thread);
    }
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    int room = (int)sizeof line - used - 2;
    used += more < room ? more : room;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        used = 0;                       /* nowhere to say it: the abort remains */
    abort();
}

}
