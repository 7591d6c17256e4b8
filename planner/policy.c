/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies, and their names and knobs as people write them. See policy.h. */
#include "planner/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policies.h"
#include "src/base/near.h"

#define DECLARE(name) extern const struct sh_policy sh_policy_##name;
#define ENTRY(name) &sh_policy_##name,
SH_POLICIES(DECLARE)
const struct sh_policy *const sh_policies[] = {SH_POLICIES(ENTRY) NULL};

static int find_policy(const char *name, size_t length, const struct sh_policy **out, struct sh_err *e)
{
    char all[64 * 32] = "";
    for (int i = 0; sh_policies[i]; i++) {
        if (strlen(sh_policies[i]->name) == length && !memcmp(sh_policies[i]->name, name, length)) {
            *out = sh_policies[i];
            return 0;
        }
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? "\n" : "", sh_policies[i]->name);
    }
    char near[128];
    sh_misused(e, "\"%.*s\" is no policy", (int)(length < 64 ? length : 64), name);
    return sh_hint(e, "did you mean %s? shears info policies lists all", sh_near(name, length, all, near, sizeof near));
}

static int set_name(const struct sh_knob *k, const char *value, size_t length, double *to)
{
    for (int i = 0; k->names[i]; i++)
        if (strlen(k->names[i]) == length && !memcmp(k->names[i], value, length)) {
            *to = i;
            return 0;
        }
    return -1;
}

static int set_number(const struct sh_knob *k, const char *value, size_t length, double *to)
{
    char text[64], *end;
    if (!length || length >= sizeof text || strspn(value, "0123456789+-.eE") < length)
        return -1;
    memcpy(text, value, length);
    text[length] = 0;
    double x = strtod(text, &end);
    if (*end || !isfinite(x) || x < k->min || x > k->max || (k->whole && x != floor(x)))
        return -1;
    *to = x;
    return 0;
}

static int refuse_value(const struct sh_policy *p, const struct sh_knob *k, const char *value, size_t length,
                        struct sh_err *e)
{
    char names[128] = "";
    for (int i = 0; k->names && k->names[i]; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", k->names[i]);
    }
    if (k->names)
        return sh_misused(e, "%s: %s=%.*s, expected one of %s", p->name, k->name, (int)length, value, names);
    return sh_misused(e, "%s: %s=%.*s, expected a %snumber from %g to %g", p->name, k->name, (int)length, value,
                      k->whole ? "whole " : "", k->min, k->max);
}

static int set_knob(struct sh_policy_spec *s, unsigned *is_set, const char *item, size_t length, struct sh_err *e)
{
    const struct sh_policy *p = s->policy;
    const char *equals = memchr(item, '=', length);
    char all[SH_MAX_KNOBS * 32] = "", near[128];
    if (!equals)
        return sh_misused(e, "%s: \"%.*s\" sets nothing, expected name=value", p->name, (int)length, item);
    size_t name = (size_t)(equals - item);
    for (int i = 0; p->knobs && p->knobs[i].name; i++) {
        const struct sh_knob *k = &p->knobs[i];
        const char *value = equals + 1;
        if (strlen(k->name) == name && !memcmp(k->name, item, name)) {
            if (*is_set >> i & 1)
                return sh_misused(e, "%s: %s is set twice", p->name, k->name);
            *is_set |= 1u << i;
            int bad = (k->names ? set_name : set_number)(k, value, length - name - 1, &s->knob[i]);
            return bad ? refuse_value(p, k, value, length - name - 1, e) : 0;
        }
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", at ? "\n" : "", k->name);
    }
    sh_misused(e, "%s has no knob \"%.*s\"", p->name, (int)name, item);
    return *all ? sh_hint(e, "did you mean %s?", sh_near(item, name, all, near, sizeof near))
                : sh_hint(e, "it has no knobs at all");
}

int sh_policy_parse(const char *text, struct sh_policy_spec *out, struct sh_err *e)
{
    struct sh_policy_spec s = {0};
    size_t name = strcspn(text, ":");
    if (find_policy(text, name, &s.policy, e))
        return -1;
    for (int i = 0; s.policy->knobs && s.policy->knobs[i].name; i++)
        s.knob[i] = s.policy->knobs[i].start;
    unsigned is_set = 0;
    for (const char *at = text + name; *at;) {          /* at the ':' or ',' before an item */
        size_t length = strcspn(++at, ",");
        if (set_knob(&s, &is_set, at, length, e))
            return -1;
        at += length;
    }
    *out = s;
    return 0;
}

const char *sh_policy_knobs(const struct sh_policy_spec *p, char text[SH_POLICY_TEXT])
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; p->policy->knobs && p->policy->knobs[i].name && at < SH_POLICY_TEXT; i++) {
        const struct sh_knob *k = &p->policy->knobs[i];
        int n = k->names ? snprintf(text + at, SH_POLICY_TEXT - at, "%s%s=%s", i ? "," : "", k->name,
                                    k->names[(int)p->knob[i]])
                         : snprintf(text + at, SH_POLICY_TEXT - at, "%s%s=%.12g", i ? "," : "", k->name, p->knob[i]);
        at += (size_t)n;
    }
    return text;
}

double sh_policy_knob(const struct sh_policy_spec *p, const char *name, double otherwise)
{
    for (int i = 0; p->policy->knobs && p->policy->knobs[i].name; i++)
        if (!strcmp(p->policy->knobs[i].name, name))
            return p->knob[i];
    return otherwise;
}

int sh_policy_protected(const struct sh_policy_spec *p)
{
    return (int)(sh_policy_knob(p, "sinks", 0) + sh_policy_knob(p, "recent", 0));
}

int sh_policy_drop(const struct sh_policy_spec *p, int budget)
{
    double drop = sh_policy_knob(p, "drop", 1);
    int n = (int)(drop < 1 ? drop * budget : drop);
    return n < 1 ? 1 : n;
}

int sh_policy_is_stack(const struct sh_policy_spec *p)
{
    return p->policy->is_stack && p->policy->is_stack(p->knob);
}
