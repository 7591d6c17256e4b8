/* SPDX-License-Identifier: Apache-2.0 */
/* See say.h. */
#include "src/base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"

struct line {
    char at[4096];
    size_t n;
};

static void add(struct line *l, const char *text, size_t n)
{
    if (l->n + n > sizeof l->at) {
        fwrite(l->at, 1, l->n, stderr);
        l->n = 0;
    }
    memcpy(l->at + l->n, text, n);
    l->n += n;
}

/* One write, so that lines of several processes do not mix. */
void sh_say(const char *label, const char *text)
{
    struct line l = {.n = 0};
    add(&l, label, strlen(label));
    for (int n, is_shown; *text; text += n) {
        n = sh_utf8_plain(text, &is_shown);
        add(&l, is_shown ? text : "?", is_shown ? (size_t)n : 1);
    }
    add(&l, "\n", 1);
    fwrite(l.at, 1, l.n, stderr);
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
    if (e->status == SH_UNREAD)
        return e->status;
    sh_say("shears: ", e->text);
    if (e->hint[0])
        sh_say("hint: ", e->hint);
    return e->status;
}
