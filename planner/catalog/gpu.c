/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h. */
#include "planner/catalog/catalog.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F(name) offsetof(struct sh_gpu, name)

static const struct { const char *key; size_t field; double max; } keys[] = {
    {"gb", F(gb), 1e6}, {"mib", F(mib), 1e9}, {"visible", F(visible), 1e6}, {"gbps", F(gbps), 1e6},
    {"f16", F(f16), 1e6}, {"f8", F(f8), 1e6}, {"link", F(link), 1e6}, {"watts", F(watts), 1e6}};

static int set(struct sh_gpu *b, const char *key, const char *value, struct sh_err *e)
{
    char *end;
    double x = strtod(value, &end);
    if (!strcmp(key, "aka"))
        return 0;                       /* see spelling.c */
    if (!strcmp(key, "dies")) {
        b->dies = x >= 1 && x <= 64 ? (int)x : 0;
        return end == value || *end || b->dies < 1 || b->dies != x
                   ? sh_fail(e, "dies: found \"%.40s\", expected a whole number from 1 to 64", value) : 0;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i].key)) {
            if (end == value || *end || !(x > 0) || x > keys[i].max)
                return sh_fail(e, "%s: found \"%.40s\", expected a number above 0, at most %g", key, value,
                               keys[i].max);
            *(double *)((char *)b + keys[i].field) = x;
            return 0;
        }
    return sh_fail(e, "unknown key \"%.40s\", expected one of gb, mib, visible, gbps, f16, f8, link, watts, dies, aka",
                   key);
}

static int next_word(const char **at, char *to, size_t bytes)
{
    *at += strspn(*at, " \t");
    size_t n = strcspn(*at, " \t|\r\n");
    if (n >= bytes)
        return -1;
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += n;
    return n > 0;
}

int sh_gpu_row(const char *row, const char *at, struct sh_gpu *out, struct sh_err *e)
{
    struct sh_gpu b = {.dies = 1};
    char word[sizeof b.name];
    int got = next_word(&row, word, sizeof word);
    if (got <= 0 || strchr(word, '='))
        return sh_fail(e, "%s: expected a name at the beginning", at);
    memcpy(b.name, word, sizeof b.name);
    while ((got = next_word(&row, word, sizeof word)) > 0) {
        char *is = strchr(word, '=');
        if (!is)
            return sh_fail(e, "%s: %s: found \"%s\", expected key=value", at, b.name, word);
        *is++ = '\0';
        if (set(&b, word, is, e))
            return sh_err_prefix(e, "%s: %s", at, b.name);
    }
    if (got < 0)
        return sh_fail(e, "%s: %s: a word is too long", at, b.name);
    if (!(b.gb > 0 || b.mib > 0) || !(b.gbps > 0) || !(b.f16 > 0))
        return sh_fail(e, "%s: %s: expected gb= or mib=, and gbps= and f16=", at, b.name);
    *out = b;
    return 0;
}

uint64_t sh_gpu_bytes(const struct sh_gpu *b)
{
    return (uint64_t)floor((b->mib > 0 ? b->mib * 0x1p20 : b->gb * 1e9) / b->dies);
}
