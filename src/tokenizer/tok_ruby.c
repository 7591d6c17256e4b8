/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a pattern in Oniguruma's Ruby syntax as one that means the same to PCRE2:
 *
 *   \s \S           the Unicode property White_Space (PCRE2 counts U+180E as space as well)
 *   \w \W \b \B     alphabetic, marks, decimal digits, connectors; outside of a set also U+00B2, U+00B3,
 *                   U+00B9, U+00BC to U+00BE, as Oniguruma has it for Latin-1
 *   [:alpha:] …     the Unicode properties of these names
 *   \v              U+000B (PCRE2: all vertical space)
 *   \p{Han} …       the script (to PCRE2 a bare name also means the script's extensions)
 *   [a[bc]]         a set within a set is their union (to PCRE2 the inner bracket is a character)
 *   (?m)            the dot matches newlines (PCRE2's s)
 *   {,n}            {0,n}
 *
 * What has no such rewriting is refused by name: \h, \X, intersections with &&, negated inner sets, [:punct:],
 * which means one thing to Oniguruma 6.9.8 and another to 6.9.10, and a{1,3}+, which repeats in Ruby but is
 * possessive in PCRE2. */
#include <string.h>

#include "src/tokenizer/tok_regex.h"

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LATIN1 "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"     /* words as well, unless within brackets */
#define IN "[" WORD LATIN1 "]"
#define EDGE "(?:(?<=" IN ")(?!" IN ")|(?<!" IN ")(?=" IN "))"
#define NO_EDGE "(?:(?<=" IN ")(?=" IN ")|(?<!" IN ")(?!" IN "))"

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

/* What an escape outside of brackets and within them is written as; "": refused, NULL: as it is. */
static const struct { char c; const char *outside, *within; } escapes[] = {
    {'s', "\\p{White_Space}", "\\p{White_Space}"}, {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'w', IN, WORD}, {'W', "[^" WORD LATIN1 "]", ""}, {'b', EDGE, NULL}, {'B', NO_EDGE, ""},
    {'v', "\\x0b", "\\x0b"}, {'V', "", ""}, {'h', "", ""}, {'H', "", ""}, {'X', "", ""}};

static int escape(struct reader *r)
{
    char c = peek(r, 1);
    if ((c == 'p' || c == 'P') && peek(r, 2) == '{') {
        property(r);
        return 0;
    }
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        const char *as = r->depth ? escapes[i].within : escapes[i].outside;
        if (escapes[i].c != c || !as)
            continue;
        if (!*as)
            return sh_fail(r->e, "regular expression: \\%c%s at byte %zu is not supported", c,
                           r->depth ? " within brackets" : "", r->i);
        put(r, as);
        r->i += 2;
        return 0;
    }
    copy(r, 2);
    return 0;
}

/* [:name:] within brackets. */
static int class(struct reader *r)
{
    static const struct { const char *name, *as; } classes[] = {
        {"alpha", "\\p{Alphabetic}"}, {"alnum", "\\p{Alphabetic}\\p{Nd}"}, {"word", WORD},
        {"upper", "\\p{Uppercase}"}, {"lower", "\\p{Lowercase}"}, {"digit", "\\p{Nd}"},
        {"space", "\\p{White_Space}"}, {"blank", "\\p{Zs}\\t"}, {"cntrl", "\\p{Cc}"},
        {"xdigit", "0-9A-Fa-f"}, {"ascii", "\\x00-\\x7f"}};
    const char *name = r->at + r->i + 2, *end = memchr(name, ':', r->n - r->i - 2);
    size_t length = end ? (size_t)(end - name) : 0;
    for (size_t i = 0; end && peek(r, length + 3) == ']' && i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == length && !memcmp(classes[i].name, name, length)) {
            put(r, classes[i].as);
            r->i += length + 4;
            return 0;
        }
    return sh_fail(r->e, "regular expression: the class [:%.*s at byte %zu is not supported",
                   length > 20 ? 20 : (int)length, name, r->i);
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
        return sh_fail(r->e, "regular expression: the intersection && at byte %zu is not supported", r->i);
    if (c == '[' && next == ':')
        return class(r);
    if (c == '[') {
        if (next == '^' || (r->i && r->at[r->i - 1] == '-'))
            return sh_fail(r->e, "regular expression: the inner set at byte %zu is not supported", r->i);
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
        return sh_fail(r->e, "regular expression: the repeated interval at byte %zu is not supported", r->i);
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
