/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs in text. See policy.h. */
#include "planner/policy/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/read_number.h"

static int is(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !memcmp(name, text, length);
}

static int set_name(const struct sh_knob *k, const char *text, size_t length, double *to)
{
    for (int i = 0; k->names[i]; i++)
        if (is(k->names[i], text, length)) {
            *to = i;
            return 0;
        }
    return -1;
}

static int set_number(const struct sh_knob *k, const char *text, size_t length, double *to)
{
    char copy[64], *end;
    long long whole;
    if (!length || length >= sizeof copy || strspn(text, "0123456789+-.eEkKM") < length)
        return -1;
    memcpy(copy, text, length);
    copy[length] = 0;
    double x = strtod(copy, &end);
    if (k->whole && *end && !*sh_whole(copy, &whole))           /* 1k */
        x = (double)whole;
    else if (*end)
        return -1;
    int is_fine = !k->whole || x == floor(x) || (k->whole == SH_KNOB_WHOLE_OR_SHARE && x < 1);
    if (!isfinite(x) || x < k->min || x > k->max || !is_fine)
        return -1;
    *to = x;
    return 0;
}

static int shown(size_t length)
{
    return (int)(length < 64 ? length : 64);
}

static int refuse_value(const char *owner, const struct sh_knob *k, const char *text, size_t length, struct sh_err *e)
{
    char names[128] = "";
    for (int i = 0; k->names && k->names[i]; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", k->names[i]);
    }
    if (k->names)
        return sh_misused(e, "%s: %s=%.*s, expected one of %s", owner, k->name, shown(length), text, names);
    return sh_misused(e, "%s: %s=%.*s, expected a %snumber from %.10g to %.10g%s", owner, k->name, shown(length), text,
                      k->whole ? "whole " : "", k->min, k->max,
                      k->whole == SH_KNOB_WHOLE_OR_SHARE ? " or a fraction below 1" : "");
}

/* The knob's index, or -1. */
static int find(const char *owner, const struct sh_knob *knobs, const char *name, size_t length, struct sh_err *e)
{
    char all[SH_MAX_KNOBS * 32] = "", list[SH_MAX_KNOBS * 32] = "";
    for (int i = 0; knobs && knobs[i].name; i++) {
        if (is(knobs[i].name, name, length))
            return i;
        size_t at = strlen(all), said = strlen(list);
        snprintf(all + at, sizeof all - at, "%s%s", at ? "\n" : "", knobs[i].name);
        snprintf(list + said, sizeof list - said, "%s%s", said ? ", " : "", knobs[i].name);
    }
    sh_misused(e, "%s has no knob \"%.*s\"", owner, shown(length), name);
    if (!*all)
        return sh_hint(e, "it has no knobs at all");
    sh_hint_near(e, name, length, all, "");
    if (*e->hint)
        return -1;
    return sh_hint(e, "its knobs are %s", list);
}

static int set_knob(const char *owner, const struct sh_knob *knobs, const char *item, size_t length, unsigned *is_set,
                    double *value, struct sh_err *e)
{
    const char *equals = memchr(item, '=', length);
    if (!equals)
        return sh_misused(e, "%s: found \"%.*s\", expected name=value", owner, shown(length), item);
    size_t name = (size_t)(equals - item), rest = length - name - 1;
    int i = find(owner, knobs, item, name, e);
    if (i < 0)
        return -1;
    const struct sh_knob *k = &knobs[i];
    if (*is_set >> i & 1)
        return sh_misused(e, "%s: %s is set twice", owner, k->name);
    *is_set |= 1u << i;
    return (k->names ? set_name : set_number)(k, equals + 1, rest, &value[i])
        ? refuse_value(owner, k, equals + 1, rest, e) : 0;
}

int sh_knobs_parse(const char *owner, const struct sh_knob *knobs, const char *text, double value[SH_MAX_KNOBS],
                   struct sh_err *e)
{
    double now[SH_MAX_KNOBS] = {0};
    unsigned is_set = 0;
    for (int i = 0; knobs && knobs[i].name; i++)
        now[i] = knobs[i].default_value;
    while (*text) {                     /* at the ':' or ',' before an item */
        size_t length = strcspn(++text, ",");
        if (set_knob(owner, knobs, text, length, &is_set, now, e))
            return -1;
        text += length;
    }
    memcpy(value, now, sizeof now);
    return 0;
}

const char *sh_knobs_text(const struct sh_knob *knobs, const double *value, char text[SH_POLICY_TEXT])
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; knobs && knobs[i].name && at < SH_POLICY_TEXT; i++) {
        const char *comma = i ? "," : "";
        int n = knobs[i].names ? snprintf(text + at, SH_POLICY_TEXT - at, "%s%s=%s", comma, knobs[i].name,
                                          knobs[i].names[(int)value[i]])
                               : snprintf(text + at, SH_POLICY_TEXT - at, "%s%s=%.12g", comma, knobs[i].name, value[i]);
        at += (size_t)n;
    }
    return text;
}
