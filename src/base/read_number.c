/* SPDX-License-Identifier: Apache-2.0 */
/* See read_number.h. */
#include "src/base/read_number.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

int sh_read_whole(const char *what, const char *text, double min, double max, long long *to, struct sh_err *e)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return sh_misused(e, "%s: \"%s\" is not a whole number", what, text);
    if ((min != 0 || max != 0) && ((double)value < min || (double)value > max))
        return sh_misused(e, "%s: %lld is out of range, expected %.0f to %.0f", what, value, min, max);
    *to = value;
    return 0;
}

int sh_read_real(const char *what, const char *text, double min, double max, double *to, struct sh_err *e)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return sh_misused(e, "%s: \"%s\" is not a number", what, text);
    if ((min != 0 || max != 0) && (value < min || value > max))
        return sh_misused(e, "%s: %g is out of range, expected %g to %g", what, value, min, max);
    *to = value;
    return 0;
}

int sh_read_dtype(const char *name, enum sh_type *out, struct sh_err *e)
{
    int type = sh_type_of(name);
    if (type < 0)
        return sh_misused(e, "--dtype: unknown value \"%s\", expected one of f32, f16, bf16", name);
    *out = (enum sh_type)type;
    return 0;
}

int sh_read_name(const char *option, const char *name, const char *const names[], struct sh_err *e)
{
    char known[80] = "";
    for (int i = 0; names[i]; i++) {
        if (!name || !strcmp(names[i], name))
            return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", names[i]);
    }
    return sh_misused(e, "--%s: unknown value \"%s\", expected one of %s", option, name, known);
}

/* Into ints or reals, whichever is not NULL. */
static int read_list(const char *what, const char *text, int *ints, double *reals, int most, int *n, struct sh_err *e)
{
    char *copy = xstrdup(text), *at = copy, *item;
    int bad = 0;
    *n = 0;
    while (!bad && (item = strsep(&at, ","))) {
        long long whole = 0;
        if (*n == most)
            bad = sh_misused(e, "%s: expected at most %d values", what, most);
        else if (reals)
            bad = sh_read_real(what, item, 0, 0, &reals[*n], e);
        else if (!(bad = sh_read_whole(what, item, 0, INT32_MAX, &whole, e)))
            ints[*n] = (int)whole;
        *n += !bad;
    }
    free(copy);
    return bad;
}

int sh_read_ints(const char *what, const char *text, int *to, int most, int *n, struct sh_err *e)
{
    return read_list(what, text, to, NULL, most, n, e);
}

int sh_read_reals(const char *what, const char *text, double *to, int most, int *n, struct sh_err *e)
{
    return read_list(what, text, NULL, to, most, n, e);
}

int sh_read_range(const char *what, const char *text, int *first, int *last, struct sh_err *e)
{
    size_t digits = strspn(text, "0123456789");
    size_t after = text[digits] == '-' ? strspn(text + digits + 1, "0123456789") : 0;
    if (!digits || (text[digits] && (!after || text[digits + 1 + after])))
        return sh_misused(e, "%s: found \"%.40s\", expected a range A-B or one number", what, text);
    char *copy = xstrdup(text), *dash = strchr(copy, '-');
    long long a = 0, b = 0;
    if (dash)
        *dash = '\0';
    int bad = sh_read_whole(what, copy, 0, INT32_MAX, &a, e) ||
              sh_read_whole(what, dash ? dash + 1 : copy, 0, INT32_MAX, &b, e);
    if (!bad && b < a)
        bad = sh_misused(e, "%s: %s: the range ends before it begins", what, text);
    if (!bad) {
        *first = (int)a;
        *last = (int)b;
    }
    free(copy);
    return bad ? -1 : 0;
}
