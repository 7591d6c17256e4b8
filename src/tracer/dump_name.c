/* SPDX-License-Identifier: Apache-2.0 */
/* See dump_name.h. A number takes all digits there are, so nothing is ever tried twice. */
#include "src/tracer/dump_name.h"

#include <string.h>

enum { MOST = 10000000 };               /* of a number in a name */

const char *const sh_dump_kinds[] = {"attn", "q", "k", "v", NULL};

static const char *const words[] = {"{sequence}", "{layer}", "{kind}"};

enum { SEQUENCE, LAYER, KIND, N_WORD };

/* The word that the pattern goes on with; N_WORD: none. */
static int word_at(const char *pattern)
{
    int i = 0;
    while (i < N_WORD && strncmp(pattern, words[i], strlen(words[i])))
        i++;
    return i;
}

int sh_dump_name_check(const char *pattern, struct sh_err *e)
{
    int seen[N_WORD] = {0};
    for (const char *p = pattern; *p; p++) {
        int i = *p == '{' ? word_at(p) : N_WORD;
        if (*p == '{' && (i == N_WORD || seen[i]))
            return sh_misused(e, "--key %s: at \"%s\": expected {sequence}, {layer} or {kind}, each at most once",
                              pattern, p);
        if (i < N_WORD) {
            seen[i] = 1;
            p += strlen(words[i]) - 1;
        }
    }
    return 0;
}

static int take_number(const char **name, int *out)
{
    int x = 0;
    const char *p = *name;
    for (; *p >= '0' && *p <= '9'; p++)
        if ((x = 10 * x + (*p - '0')) > MOST)
            return 0;
    int some = p > *name;
    *name = p;
    *out = x;
    return some;
}

static int take_kind(const char **name, enum sh_dump_kind *out)
{
    for (int i = 0; i < SH_N_DUMP_KIND; i++) {
        size_t n = strlen(sh_dump_kinds[i]);
        if (!strncmp(*name, sh_dump_kinds[i], n)) {
            *name += n;
            *out = (enum sh_dump_kind)i;
            return 1;
        }
    }
    return 0;
}

int sh_dump_name_match(const char *pattern, const char *name, struct sh_dump_name *out)
{
    *out = (struct sh_dump_name){.kind = SH_DUMP_ATTN, .sequence = -1, .layer = -1};
    while (*pattern) {
        int word = *pattern == '{' ? word_at(pattern) : N_WORD;
        if (word == N_WORD) {
            if (*pattern++ != *name++)
                return 0;
            continue;
        }
        pattern += strlen(words[word]);
        if (word == KIND ? !take_kind(&name, &out->kind)
                         : !take_number(&name, word == LAYER ? &out->layer : &out->sequence))
            return 0;
    }
    return !*name;
}
