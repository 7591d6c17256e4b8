/* SPDX-License-Identifier: Apache-2.0 */
/* See read_number.h. */
#include "src/base/read_number.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/mem.h"

const char *sh_whole(const char *text, long long *to)
{
    char *end, *point;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    double many = strtod(text, &point), unit = *point == 'k' || *point == 'K' ? 1024 : *point == 'M' ? 1048576 : 0;
    if (end == text || errno || *end == 'x' || *end == 'X')
        return text;
    if (unit > 0) {
        many *= unit;
        if (many != floor(many) || fabs(many) > 9e15)
            return text;
        value = (long long)many;
        end = point + 1;
    }
    *to = value;
    return end;
}

int sh_read_whole(const char *what, const char *text, double min, double max, long long *to, struct sh_err *e)
{
    long long value = 0;
    const char *end = sh_whole(text, &value);
    if (end == text || *end)
        return sh_misused(e, "%s: found \"%s\", expected a whole number (k is 1024, M is 1024 k)", what, text);
    if ((min != 0 || max != 0) && ((double)value < min || (double)value > max))
        return sh_misused(e, "%s: %lld is out of range, expected %.0f to %.0f", what, value, min, max);
    *to = value;
    return 0;
}

int sh_read_real(const char *what, const char *text, double min, double max, double *to, struct sh_err *e)
{
    char *end;
    double value = strtod(text, &end);
    int is_percent = *end == '%' && max > 0 && max <= 1;
    if (end == text || end[is_percent] || !isfinite(value))
        return sh_misused(e, "%s: found \"%s\", expected a number", what, text);
    value /= is_percent ? 100 : 1;
    if ((min != 0 || max != 0) && (value < min || value > max))
        return sh_misused(e, "%s: %g is out of range, expected %g to %g", what, value, min, max);
    *to = value;
    return 0;
}

int sh_read_seconds(const char *what, const char *text, double min, double max, double *to, struct sh_err *e)
{
    static const struct { const char *unit; double seconds; } units[] = {
        {"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}};
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text && isfinite(value); i++)
        if (!strcmp(end, units[i].unit)) {
            value *= units[i].seconds;
            if (value < min || value > max)
                return sh_misused(e, "%s: %s is out of range, expected %g to %g seconds", what, text, min, max);
            *to = value;
            return 0;
        }
    return sh_misused(e, "%s: found \"%s\", expected a time: a number with us, ms, s (default), min or h", what,
                      text);
}

int sh_read_bytes(const char *what, const char *text, double min, double max, size_t *to, struct sh_err *e)
{
    static const char units[] = "kMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    if (unit) {
        value *= pow(1024, (double)(unit - units + 1));
        end++;
        end += strncmp(end, "iB", 2) ? *end == 'B' : 2;
    }
    if (end == text || *end || !(value >= 0) || value > 9e18)
        return sh_misused(e, "%s: found \"%s\", expected a number of bytes, with an optional suffix k, M, G or T", what,
                         text);
    if ((min != 0 || max != 0) && (value < min || value > max))
        return sh_misused(e, "%s: %s is out of range, expected %.0f to %.0f bytes", what, text, min, max);
    *to = (size_t)value;
    return 0;
}

const char *sh_format_spelled(const char *name, size_t length)
{
    static const char *const names[][2] = {
        {"f32", "fp32"}, {"f32", "float32"}, {"f32", "float"}, {"f16", "fp16"}, {"f16", "float16"}, {"f16", "half"},
        {"bf16", "bfloat16"}, {"f8", "fp8"}, {"f8", "float8"}, {"f8", "fp8_e4m3"}, {"f8", "fp8_e5m2"},
        {"f8", "float8_e4m3fn"}, {"f8", "float8_e5m2"}, {"int8", "i8"}, {"int4", "i4"}};
    static const char *const own[] = {"f32", "f16", "bf16", "f8", "int8", "int4", "int3", "int2",
                                      "q8_0", "q4_0", "mxfp4", "nvfp4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][1]) == length && !strncasecmp(name, names[i][1], length))
            return names[i][0];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strlen(own[i]) == length && !strncasecmp(name, own[i], length))
            return own[i];
    return NULL;
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
static int read_list(const char *what, const char *text, int *ints, double *reals, double max, int most, int *n,
                     struct sh_err *e)
{
    char *copy = xstrdup(text), *at = copy, *item;
    int bad = 0;
    *n = 0;
    while (!bad && (item = strsep(&at, ","))) {
        long long whole = 0;
        if (*n == most)
            bad = sh_misused(e, "%s: expected at most %d values", what, most);
        else if (reals)
            bad = sh_read_real(what, item, 0, max, &reals[*n], e);
        else if (!(bad = sh_read_whole(what, item, 0, INT32_MAX, &whole, e)))
            ints[*n] = (int)whole;
        *n += !bad;
    }
    free(copy);
    return bad;
}

int sh_read_ints(const char *what, const char *text, int *to, int most, int *n, struct sh_err *e)
{
    return read_list(what, text, to, NULL, 0, most, n, e);
}

int sh_read_reals(const char *what, const char *text, double max, double *to, int most, int *n, struct sh_err *e)
{
    return read_list(what, text, NULL, to, max, most, n, e);
}

int sh_read_range(const char *what, const char *text, int *first, int *last, struct sh_err *e)
{
    long long a = 0, b = 0;
    const char *end = sh_whole(text, &a), *dash = end;
    b = a;
    if (end != text && *dash == '-')
        end = sh_whole(dash + 1, &b);
    if (end == text || *end || (dash != end && end == dash + 1) || a < 0 || b < 0)
        return sh_misused(e, "%s: found \"%.40s\", expected a range A-B or one number", what, text);
    if (a > INT32_MAX || b > INT32_MAX)
        return sh_misused(e, "%s: %s is out of range, expected at most %d", what, text, INT32_MAX);
    if (b < a)
        return sh_misused(e, "%s: %s: the range ends before it begins", what, text);
    *first = (int)a;
    *last = (int)b;
    return 0;
}
