/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/json_python.h"

#include <string.h>

#include "src/base/mem.h"

/* The length of Infinity, -Infinity or NaN at `at`; 0: it is a key, or something else. */
static size_t python_number(const char *at, const char *end)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - at) < n || memcmp(at, words[i], n))
            continue;
        const char *next = at + n;
        while (next < end && (*next == ' ' || *next == '\t' || *next == '\r' || *next == '\n'))
            next++;
        return next < end && *next == ':' ? 0 : n;
    }
    return 0;
}

char *sh_json_plain(const char *text, size_t bytes, size_t *out)
{
    char *to = xmalloc(2 * bytes + 1);
    const char *end = text + bytes;
    size_t n = 0, taken;
    for (const char *at = text; at < end; at += taken) {
        size_t number = python_number(at, end);
        taken = number ? number : 1;
        if (*at == '"') {               /* a string, to its end */
            while (at + taken < end && at[taken] != '"')
                taken += at[taken] == '\\' && at + taken + 1 < end ? 2 : 1;
            taken += at + taken < end;
        }
        if (number)
            to[n++] = '"';
        memcpy(to + n, at, taken);
        n += taken;
        if (number)
            to[n++] = '"';
    }
    *out = n;
    return to;
}
