/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies, and their names and knobs in text. See policy.h. */
#include "planner/policy/policy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/base/rng.h"

/* Every eviction policy: policy_<name>.c exports sh_policy_<name>; policy_window.c has full and streaming as well,
 * policy_oracle.c both oracles. */
#define SH_POLICIES(X)       \
    X(full)                  \
    X(window)                \
    X(streaming)             \
    X(random)                \
    X(knorm)                 \
    X(h2o)                   \
    X(observed)              \
    X(vatp)                  \
    X(tova)                  \
    X(roco)                  \
    X(scissorhands)          \
    X(scissorhands_released) \
    X(reservoir)             \
    X(keyformer)             \
    X(snapkv)                \
    X(expected)              \
    X(keydiff)               \
    X(lagkv)                 \
    X(caote)                 \
    X(rkv)                   \
    X(oracle)                \
    X(oracle_readmit)

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
    sh_misused(e, "unknown policy \"%.*s\"", (int)(length < 64 ? length : 64), name);
    return sh_hint_near(e, name, length, all, "shears info policies lists them");
}

int sh_policy_parse(const char *text, struct sh_policy_spec *out, struct sh_err *e)
{
    return sh_policy_parse_own(text, NULL, out, e);
}

int sh_policy_parse_own(const char *text, const struct sh_policy *own, struct sh_policy_spec *out, struct sh_err *e)
{
    struct sh_policy_spec s = {.policy = own};
    size_t name = strcspn(text, ":");
    int is_own = own && strlen(own->name) == name && !memcmp(own->name, text, name);
    if ((!is_own && find_policy(text, name, &s.policy, e)) ||
        sh_knobs_parse(s.policy->name, s.policy->knobs, text + name, s.knob, e))
        return -1;
    *out = s;
    return 0;
}

const char *sh_policy_knobs(const struct sh_policy_spec *p, char text[SH_POLICY_TEXT])
{
    return sh_knobs_text(p->policy->knobs, p->knob, text);
}

double sh_policy_knob(const struct sh_policy_spec *p, const char *name, double otherwise)
{
    for (int i = 0; p->policy->knobs && p->policy->knobs[i].name; i++)
        if (!strcmp(p->policy->knobs[i].name, name))
            return p->knob[i];
    return otherwise;
}

int sh_policy_recent(const struct sh_policy_spec *p, int budget)
{
    return sh_knob_tokens(sh_policy_knob(p, "recent", 0), budget);
}

static int has_share(const struct sh_policy_spec *p)
{
    double recent = sh_policy_knob(p, "recent", 0);
    return recent > 0 && recent < 1;
}

int sh_policy_drop(const struct sh_policy_spec *p, int budget)
{
    int n = sh_knob_tokens(sh_policy_knob(p, "drop", 1), budget);
    return n < 1 ? 1 : n;
}

int sh_policy_protected(const struct sh_policy_spec *p, int budget)
{
    return (int)sh_policy_knob(p, "sinks", 0) + sh_policy_recent(p, budget);
}

int sh_policy_least_budget(const struct sh_policy_spec *p)
{
    double sinks = sh_policy_knob(p, "sinks", 0);
    if (!has_share(p))
        return (int)(sinks + sh_policy_knob(p, "recent", 0)) + 1;
    double others = 1 - sh_policy_knob(p, "recent", 0), about = sinks / others - 2;
    int least = about < 1 ? 1 : about > INT_MAX / 2 ? INT_MAX / 2 : (int)about;
    while (least < INT_MAX / 2 && least - sh_policy_recent(p, least) <= (int)sinks)
        least++;
    return least;
}

int sh_policy_check_live(const struct sh_policy_spec *p, int prefill, struct sh_err *e)
{
    if (p->policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND)) {
        sh_misused(e, "%s needs future attention, which a live cache does not have", p->policy->name);
        return sh_hint(e, "shears replay measures it on recorded attention");
    }
    if ((p->policy->needs & SH_NEEDS_PROMPT) && prefill < 1) {
        sh_misused(e, "%s decides what to evict at the end of the prompt", p->policy->name);
        return sh_hint(e, "--prefill N gives the length of the prompt in tokens");
    }
    return 0;
}

int sh_policy_check_budget(const struct sh_policy_spec *p, int budget, int n_token, int layer, int head,
                           struct sh_err *e)
{
    int least = sh_policy_least_budget(p), keeps_all = p->policy->keeps_all && p->policy->keeps_all(p->knob, layer);
    if (budget >= least || budget >= n_token || keeps_all)
        return 0;
    return sh_misused(e, "%s: a budget of %d tokens (layer %d, head %d), but %d are protected from eviction: "
                      "expected at least %d", p->policy->name, budget, layer, head, sh_policy_protected(p, budget),
                      least);
}

const struct sh_knob sh_policy_protect_knobs[] = {SH_KNOB_SINKS(0), SH_KNOB_RECENT(0), {0}};

int sh_policy_always(const double *knob)
{
    (void)knob;
    return 1;
}

uint64_t sh_policy_draws(const struct sh_policy_head *h)
{
    return sh_rng(h->seed, ((uint64_t)(unsigned)h->layer << 32) | (unsigned)h->head);
}

int sh_policy_is_stack(const struct sh_policy_spec *p)
{
    return !has_share(p) && p->policy->is_stack && p->policy->is_stack(p->knob);
}

/* What `to` holds already. */
const char *sh_policy_by_position(const double *knob, int n_token, struct sh_slots_policy *to)
{
    (void)knob;
    (void)n_token;
    (void)to;
    return NULL;
}

const char *sh_policy_device(const struct sh_policy_spec *p, int n_token, struct sh_slots_policy *to)
{
    *to = (struct sh_slots_policy){.rule = SH_SLOTS_OLDEST, .sinks = (int)sh_policy_knob(p, "sinks", 0), .decay = 1,
                                   .look_back = 1};
    return p->policy->device ? p->policy->device(p->knob, n_token, to) : "it needs more than the device keeps";
}

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
