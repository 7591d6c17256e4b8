/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/shell.h"

#include <string.h>

#include "src/base/mem.h"

char *sh_shell_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
    if (word[0] && word[strspn(word, plain)] == '\0')
        return xstrdup(word);
    char *out = xmalloc(4 * strlen(word) + 3), *to = out;
    *to++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *word;
    stpcpy(to, "'");
    return out;
}
