/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as objects: the four parts of a message "what: found, expected" with its hint. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/lib/lib.h"

struct shears_error {
    enum shears_status status;
    char message[sizeof((struct sh_err *)0)->text], what[sizeof((struct sh_err *)0)->text];
    char found[sizeof((struct sh_err *)0)->text], expected[sizeof((struct sh_err *)0)->text];
    char hint[sizeof((struct sh_err *)0)->hint];
};

static void copy(char *to, size_t bytes, const char *from, size_t n)
{
    snprintf(to, bytes, "%.*s", (int)n, from);
}

/* "what: where: found X, expected Y": what is wrong begins after the colon before "found", else after the first. */
static void split(struct shears_error *e)
{
    const char *text = e->message, *expected = strstr(text, "expected "), *found = strstr(text, ": found ");
    found = found ? found : strstr(text, ": ");
    if (found && expected && found > expected)
        found = NULL;
    const char *begin = found ? found + 2 : text, *end = expected ? expected : text + strlen(text);
    copy(e->what, sizeof e->what, text, found ? (size_t)(found - text) : 0);
    copy(e->expected, sizeof e->expected, expected ? expected + strlen("expected ") : "",
         expected ? strlen(expected) - strlen("expected ") : 0);
    if (!strncmp(begin, "found ", 6))
        begin += 6;
    while (end > begin && (end[-1] == ' ' || end[-1] == ',' || end[-1] == ';' || end[-1] == ':'))
        end--;
    copy(e->found, sizeof e->found, begin, (size_t)(end - begin));
}

int sh_lib_fail(struct shears_error **to, const struct sh_err *e)
{
    if (!to)
        return -1;
    struct shears_error *made = xcalloc(1, sizeof *made);
    made->status = e->status == SH_OK || e->status > SH_ABSENT ? SHEARS_FAILED : (enum shears_status)e->status;
    snprintf(made->message, sizeof made->message, "%s", e->text);
    snprintf(made->hint, sizeof made->hint, "%s", e->hint);
    split(made);
    *to = made;
    return -1;
}

int sh_lib_misused(struct shears_error **to, const char *format, ...)
{
    struct sh_err e = {.status = SH_MISUSED};
    va_list args;
    va_start(args, format);
    vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    return sh_lib_fail(to, &e);
}

int sh_lib_given(struct shears_error **to, const char *function, const char *what, const void *at)
{
    return at ? 0 : sh_lib_misused(to, "%s: found NULL, expected %s", function, what);
}

const char *shears_version(void)
{
    return PACKAGE_VERSION;
}

enum shears_status shears_error_status(const struct shears_error *e)
{
    return e ? e->status : SHEARS_OK;
}

const char *shears_error_message(const struct shears_error *e)
{
    return e ? e->message : "";
}

const char *shears_error_what(const struct shears_error *e)
{
    return e ? e->what : "";
}

const char *shears_error_found(const struct shears_error *e)
{
    return e ? e->found : "";
}

const char *shears_error_expected(const struct shears_error *e)
{
    return e ? e->expected : "";
}

const char *shears_error_hint(const struct shears_error *e)
{
    return e ? e->hint : "";
}

void shears_error_free(struct shears_error *e)
{
    free(e);
}
