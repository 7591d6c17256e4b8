/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_label.h. */
#include "planner/policy/policy_label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "src/base/mem.h"

char *sh_policy_label(const char *policy, int *is_bound)
{
    struct sh_policy_spec p;
    struct sh_err unused;
    char text[SH_POLICY_TEXT], label[SH_POLICY_LABEL];
    *is_bound = 0;
    if (sh_policy_parse(policy, &p, &unused))
        return xstrdup(policy);
    *is_bound = (p.policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND)) != 0;
    int used = snprintf(label, sizeof label, "%s", p.policy->name), n = 0;
    char *copy = xstrdup(sh_policy_knobs(&p, text)), *rest = copy, *one;
    for (int k = 0; p.policy->knobs && p.policy->knobs[k].name && (one = strsep(&rest, ",")); k++)
        if (p.knob[k] < p.policy->knobs[k].default_value || p.knob[k] > p.policy->knobs[k].default_value) {
            used += snprintf(label + used, sizeof label - (size_t)used, "%s%s", n++ ? "," : ":", one);
            if (used >= SH_POLICY_LABEL)
                used = SH_POLICY_LABEL - 1;
        }
    free(copy);
    return xstrdup(label);
}
