/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as people write them. */
#include <stdio.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "tests/tap.h"

static struct sh_err e;

static void accepted(void)
{
    struct sh_policy_spec p;
    char text[SH_POLICY_TEXT];
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o", &p, &e), 0);
    CU_ASSERT_STRING_EQUAL(p.policy->name, "h2o");
    CU_ASSERT_STRING_EQUAL(sh_policy_knobs(&p, text), "sinks=0,recent=0,score=sum,gamma=0.99");
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o:recent=5,score=decay,gamma=.5", &p, &e), 0);
    CU_ASSERT_STRING_EQUAL(sh_policy_knobs(&p, text), "sinks=0,recent=5,score=decay,gamma=0.5");
    CU_ASSERT_EQUAL(sh_policy_least_budget(&p), 6);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o:sinks=4,recent=0.5", &p, &e), 0);
    CU_ASSERT_STRING_EQUAL(sh_policy_knobs(&p, text), "sinks=4,recent=0.5,score=sum,gamma=0.99");
    CU_ASSERT(sh_policy_recent(&p, 41) == 20 && sh_policy_least_budget(&p) == 9 && !sh_policy_is_stack(&p));
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o:sinks=1000000,recent=0.999", &p, &e), 0);
    CU_ASSERT_EQUAL(sh_policy_least_budget(&p), 1000000001);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("scissorhands:drop=0.25", &p, &e), 0);
    CU_ASSERT_EQUAL(sh_policy_drop(&p, 40), 10);
    CU_ASSERT_EQUAL(sh_policy_drop(&p, 2), 1);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("scissorhands-released:first_layer=0", &p, &e), 0);
    CU_ASSERT_EQUAL(sh_policy_knob(&p, "first_layer", -1), 0);
    CU_ASSERT_EQUAL(sh_policy_knob(&p, "no such knob", -1), -1);
    CU_ASSERT_EQUAL(sh_policy_parse("r-kv:lambda=1e-1", &p, &e), 0);
}

/* Every policy, written out in full, is read as itself; its defaults are within their limits. */
static void there_and_back(void)
{
    for (int i = 0; sh_policies[i]; i++) {
        struct sh_policy_spec p, q;
        char knobs[SH_POLICY_TEXT], text[SH_POLICY_TEXT + 64], again[SH_POLICY_TEXT];
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse(sh_policies[i]->name, &p, &e), 0);
        CU_ASSERT_PTR_EQUAL(p.policy, sh_policies[i]);
        sh_policy_knobs(&p, knobs);
        snprintf(text, sizeof text, "%s%s%s", p.policy->name, *knobs ? ":" : "", knobs);
        if (sh_policy_parse(text, &q, &e))
            printf("# %s: %s\n", text, e.text);
        CU_ASSERT_STRING_EQUAL(sh_policy_knobs(&q, again), knobs);
        CU_ASSERT(!memcmp(p.knob, q.knob, sizeof p.knob) && strlen(knobs) + 1 < SH_POLICY_TEXT);
        CU_ASSERT(p.policy->summary && strlen(p.policy->summary) < 90);
        for (int k = 0; k < i; k++)
            CU_ASSERT_STRING_NOT_EQUAL(sh_policies[k]->name, p.policy->name);
    }
}

/* Refused as misuse, with `says` in the text and `hints` in the hint; the outcome is untouched. */
static void refused(const char *text, const char *says, const char *hints)
{
    struct sh_policy_spec p = {0};
    memset(&e, 0, sizeof e);
    CU_ASSERT_EQUAL(sh_policy_parse(text, &p, &e), -1);
    if (e.status != SH_MISUSED || !strstr(e.text, says) || !strstr(e.hint, hints))
        printf("# \"%s\": %s | %s\n", text, e.text, e.hint);
    CU_ASSERT_EQUAL(e.status, SH_MISUSED);
    CU_ASSERT(strstr(e.text, says) && strstr(e.hint, hints));
    CU_ASSERT_PTR_NULL(p.policy);
}

static void unknown_policies(void)
{
    refused("h20", "unknown policy \"h20\"", "h2o");
    refused("scisorhands", "unknown policy \"scisorhands\"", "scissorhands");
    refused("scissorhands_released", "unknown policy", "scissorhands-released");
    refused("", "unknown policy \"\"", "shears info policies lists them");
    refused(":recent=5", "unknown policy", "shears info policies lists them");
    refused("H2O", "unknown policy", "h2o");
}

static void unknown_knobs(void)
{
    refused("h2o:recents=5", "h2o has no knob \"recents\"", "recent");
    refused("h2o:=5", "h2o has no knob \"\"", "its knobs are ");
    refused("full:recent=5", "full has no knob \"recent\"", "no knobs at all");
}

static void bad_values(void)
{
    static const char *const values[] = {"", "x", "-1", "1.5", "5x", "1e30", "nan", "inf", " 5", "0x5", "5 ", "--5"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[64];
        snprintf(text, sizeof text, "h2o:recent=%s", values[i]);
        refused(text, "expected a whole number", "");
    }
    refused("h2o:gamma=1.01", "expected a number from 0 to 1", "");
    refused("h2o:score=max", "h2o: score=max, expected one of sum, mean, decay", "");
    refused("h2o:score=", "expected one of", "");
    refused("h2o:gamma=0.50000000000000000000000000000000000000000000000000000000000000000", "expected a number", "");
}

static void bad_lists(void)
{
    refused("h2o:", "expected name=value", "");
    refused("h2o:recent=5,", "expected name=value", "");
    refused("h2o:,recent=5", "expected name=value", "");
    refused("h2o:recent=5,,sinks=1", "expected name=value", "");
    refused("h2o:recent", "found \"recent\"", "");
    refused("h2o:recent=5,sinks=1,recent=5", "recent is set twice", "");
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"names and knobs", accepted},
        {"every policy is read as it is written", there_and_back},
        {"unknown policies, with the nearest names", unknown_policies},
        {"unknown knobs, with the nearest names", unknown_knobs},
        {"values that are none", bad_values},
        {"lists with holes, and knobs set twice", bad_lists},
        {NULL, NULL}};
    return tap_run("policy text", tests);
}
