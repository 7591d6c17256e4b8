/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_ruby.h. */
#include "src/model/tok_ruby.h"

#include <string.h>

#define WORD "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"

struct reader {
    const char *at;
    size_t n, i;
    int depth;                          /* open brackets */
    struct sh_text *out;
    struct sh_err *e;
};

static void put(struct reader *r, const char *text)
{
    sh_text_add(r->out, text, strlen(text));
}

static void copy(struct reader *r, size_t n)
{
    if (n > r->n - r->i)
        n = r->n - r->i;
    sh_text_add(r->out, r->at + r->i, n);
    r->i += n;
}

static char peek(const struct reader *r, size_t ahead)
{
    return r->i + ahead < r->n ? r->at[r->i + ahead] : '\0';
}

/* \p{Name} and \P{Name}: a script's bare name gets its prefix. */
static void property(struct reader *r)
{
    static const char *const scripts[] = {"Arabic",   "Cyrillic", "Devanagari", "Greek",
                                          "Han",      "Hangul",   "Hebrew",     "Hiragana",
                                          "Katakana", "Latin",    "Thai",       NULL};
    const char *name = r->at + r->i + 3, *end = memchr(name, '}', r->n - r->i - 3);
    size_t length = end ? (size_t)(end - name) : 0;
    copy(r, 3);
    for (int i = 0; scripts[i]; i++)
        if (strlen(scripts[i]) == length && !memcmp(scripts[i], name, length))
            put(r, "sc:");
    copy(r, end ? length + 1 : 0);
}

static int escape(struct reader *r)
{
    char c = peek(r, 1);
    if (c == 'h' || c == 'H' || (c == 'W' && r->depth))
        return sh_fail(r->e, "regular expression: \\%c%s at byte %zu is not supported", c,
                       r->depth ? " within brackets" : "", r->i);
    if ((c == 'p' || c == 'P') && peek(r, 2) == '{') {
        property(r);
        return 0;
    }
    if (c == 's' || c == 'S')
        put(r, c == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    else if (c == 'w')
        put(r, r->depth ? WORD : "[" WORD "]");
    else if (c == 'W')
        put(r, "[^" WORD "]");
    else {
        copy(r, 2);
        return 0;
    }
    r->i += 2;
    return 0;
}

static void open_set(struct reader *r)
{
    r->depth = 1;
    copy(r, 1);
    if (peek(r, 0) == '^')
        copy(r, 1);
    if (peek(r, 0) == ']')
        put(r, "\\"), copy(r, 1);
}

static int in_set(struct reader *r)
{
    char c = peek(r, 0), next = peek(r, 1);
    if (c == '&' && next == '&')
        return sh_fail(r->e, "regular expression: the intersection && at byte %zu is not supported",
                       r->i);
    if (c == '[' && next == ':') {
        const char *end = memchr(r->at + r->i, ']', r->n - r->i);
        copy(r, end ? (size_t)(end - r->at) - r->i + 1 : 1);
    } else if (c == '[') {
        if (next == '^' || (r->i && r->at[r->i - 1] == '-'))
            return sh_fail(r->e, "regular expression: the inner set at byte %zu is not supported",
                           r->i);
        r->depth++;
        r->i++;
    } else if (c == ']' && --r->depth) {
        r->i++;
    } else {
        copy(r, 1);
    }
    return 0;
}

/* {n,m} and its kin; any other brace is an ordinary character. */
static int interval(struct reader *r)
{
    size_t k = 1;
    while ((peek(r, k) >= '0' && peek(r, k) <= '9') || peek(r, k) == ',')
        k++;
    if (k > 1 && peek(r, k) == '}' && peek(r, k + 1) == '+')
        return sh_fail(
            r->e, "regular expression: the repeated interval at byte %zu is not supported", r->i);
    copy(r, 1);
    if (peek(r, 0) == ',' && k > 2)
        put(r, "0");
    return 0;
}

static void group_flags(struct reader *r)
{
    copy(r, 2);
    while ((peek(r, 0) >= 'a' && peek(r, 0) <= 'z') || peek(r, 0) == '-') {
        if (peek(r, 0) == 'm') {
            put(r, "s");
            r->i++;
        } else {
            copy(r, 1);
        }
    }
}

int sh_ruby_rewrite(const char *pattern, size_t n, struct sh_text *out, struct sh_err *e)
{
    struct reader r = {.at = pattern, .n = n, .out = out, .e = e};
    while (r.i < n) {
        int bad = 0;
        char c = pattern[r.i];
        if (c == '\\')
            bad = escape(&r);
        else if (r.depth)
            bad = in_set(&r);
        else if (c == '[')
            open_set(&r);
        else if (c == '{')
            bad = interval(&r);
        else if (c == '(' && peek(&r, 1) == '?')
            group_flags(&r);
        else
            copy(&r, 1);
        if (bad)
            return -1;
    }
    return 0;
}
