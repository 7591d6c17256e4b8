/* SPDX-License-Identifier: Apache-2.0 */
/* See budget.h. */
#include "planner/policy/budget.h"

#include "src/base/read_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 22 };             /* tokens; what a trace can hold */

static int parse_one(const char *at, size_t length, struct sh_budget *b, struct sh_err *e)
{
    char text[32], *end;
    *b = (struct sh_budget){0};
    if (length && length < sizeof text) {
        memcpy(text, at, length);
        text[length] = 0;
        long long n = 0;
        if (!*sh_whole(text, &n)) {
            b->tokens = n > 0 && n <= LARGEST ? (int)n : 0;
            if (b->tokens)
                return 0;
        } else if (strpbrk(text, ".eE%")) {
            b->share = strtod(text, &end) / (*end == '%' ? 100 : 1);
            if (!end[*end == '%'] && b->share > 0 && b->share <= 1)
                return 0;
        }
    }
    return sh_misused(e, "budget \"%.*s\": expected tokens (a whole number from 1, such as 512 or 4k) or a "
                     "fraction of the sequence (such as 0.2 or 20%%; above 0, up to 1.0)",
                     (int)(length < 32 ? length : 32), at);
}

static int add(struct sh_budget b, struct sh_budget *out, int *n, struct sh_err *e)
{
    if (*n == SH_MAX_BUDGETS)
        return sh_misused(e, "more than %d budgets", SH_MAX_BUDGETS);
    out[(*n)++] = b;
    return 0;
}

/* FROM..TO/COUNT */
static int add_span(const char *at, size_t length, const char *dots, struct sh_budget *out, int *n, struct sh_err *e)
{
    struct sh_budget first, last;
    const char *slash = memchr(dots, '/', length - (size_t)(dots - at));
    char *end;
    long count = slash ? strtol(slash + 1, &end, 10) : 0;
    if (!slash || end != at + length || count < 2 || count > SH_MAX_BUDGETS)
        return sh_misused(e, "budget \"%.*s\": expected FROM..TO/COUNT with a count of 2 to %d",
                          (int)(length < 64 ? length : 64), at, SH_MAX_BUDGETS);
    if (parse_one(at, (size_t)(dots - at), &first, e) || parse_one(dots + 2, (size_t)(slash - dots - 2), &last, e))
        return -1;
    if (!first.tokens != !last.tokens)
        return sh_misused(e, "budget \"%.*s\": one end is a number of tokens, the other a fraction", (int)length, at);
    for (long i = 0; i < count; i++) {
        double f = (double)i / (double)(count - 1);
        struct sh_budget b = {0};
        if (first.tokens)
            b.tokens = (int)lround(first.tokens + f * (last.tokens - first.tokens));
        else                            /* 0.1, not 0.09999999999999999 */
            b.share = round((first.share + f * (last.share - first.share)) * 1e9) / 1e9;
        if (add(b, out, n, e))
            return -1;
    }
    return 0;
}

int sh_budget_parse(const char *text, struct sh_budget *out, int *n, struct sh_err *e)
{
    int count = *n;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const char *dots = strstr(at, "..");
        struct sh_budget b;
        if (dots && dots < at + length) {
            if (add_span(at, length, dots, out, &count, e))
                return -1;
        } else if (parse_one(at, length, &b, e) || add(b, out, &count, e)) {
            return -1;
        }
        at += length;
        if (!*at)
            break;
    }
    *n = count;
    return 0;
}

int sh_budget_tokens(const struct sh_budget *b, int n_token)
{
    if (b->tokens)
        return b->tokens;
    double n = floor(b->share * n_token + 0.5);
    return n < 1 ? 1 : (int)n;
}

const char *sh_budget_text(const struct sh_budget *b, char text[SH_BUDGET_TEXT])
{
    if (b->tokens) {
        snprintf(text, SH_BUDGET_TEXT, "%d", b->tokens);
        return text;
    }
    int n = snprintf(text, SH_BUDGET_TEXT, "%.9g", b->share);
    if (!strpbrk(text, ".e"))
        snprintf(text + n, SH_BUDGET_TEXT - (size_t)n, ".0");
    return text;
}
