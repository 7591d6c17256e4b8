/* SPDX-License-Identifier: Apache-2.0 */
/* See err.h. Texts longer than the buffers are cut, never overrun. */
#include "src/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sh_err_fill(struct sh_err *e, enum sh_status status, const char *format, ...)
{
    e->status = status;
    e->hint[0] = '\0';
    e->is_io = e->is_locked = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -1;
}

int sh_err_prefix(struct sh_err *e, const char *format, ...)
{
    char old[sizeof e->text];
    memcpy(old, e->text, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof e->text)
        used = 0;
    const char *end = strstr(e->text, ": ");
    size_t first = end ? (size_t)(end - e->text) : (size_t)used;
    int again = first && !strncmp(old, e->text, first) && !strncmp(old + first, ": ", 2);
    int room = (int)sizeof e->text - used - (int)sizeof ": ";
    snprintf(e->text + used, sizeof e->text - (size_t)used, ": %.*s", room > 0 ? room : 0,
             again ? old + first + 2 : old);
    return -1;
}

int sh_hint(struct sh_err *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->hint, sizeof e->hint, format, args);
    va_end(args);
    return -1;
}
