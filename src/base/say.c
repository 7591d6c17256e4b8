/* SPDX-License-Identifier: Apache-2.0 */
/* See say.h. */
#include "src/base/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/base/utf8.h"

void sh_say(const char *label, const char *text)
{
    fputs(label, stderr);
    sh_put_plain(stderr, text);
    fputc('\n', stderr);
}

void sh_sayf(const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sh_say(label, text);
}

int sh_report_error(const struct sh_err *e)
{
    sh_say("shears: ", e->text);
    if (e->hint[0])
        sh_say("hint: ", e->hint);
    return e->status;
}
