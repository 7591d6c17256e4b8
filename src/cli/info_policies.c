/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "src/cli/info.h"

#include <string.h>

#include "planner/policy/policy.h"

enum { WORDS = 160, NO_LIMIT = 1 << 20 };       /* more tokens than any text has */

/* Adds ", word" (or the first word). */
static void add(char to[WORDS], const char *word)
{
    size_t used = strlen(to);
    snprintf(to + used, WORDS - used, "%s%s", used ? ", " : "", word);
}

static const char *needs_text(const struct sh_policy *p, char to[WORDS])
{
    static const struct { unsigned need; const char *word; } words[] = {
        {SH_NEEDS_SCORES, "scores"}, {SH_NEEDS_KEYS, "keys"}, {SH_NEEDS_VALUES, "values"},
        {SH_NEEDS_QUERIES, "queries"}, {SH_NEEDS_PROMPT, "a prompt (--prefill)"}, {SH_NEEDS_FUTURE, "the future"}};
    to[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (p->needs & words[i].need)
            add(to, words[i].word);
    return *to ? to : "nothing";
}

/* The values that a knob may have: "0 to 1", or "n, i, t". */
static const char *values_text(const struct sh_knob *k, char to[WORDS])
{
    to[0] = '\0';
    for (int i = 0; k->names && k->names[i]; i++)
        add(to, k->names[i]);
    const char *whole = k->whole == SH_KNOB_WHOLE ? ", whole" : "";
    if (!k->names && k->max >= NO_LIMIT)
        snprintf(to, WORDS, "%g or more%s", k->min, whole);
    else if (!k->names)
        snprintf(to, WORDS, "%g to %g%s", k->min, k->max, whole);
    return to;
}

static const char *start_text(const struct sh_knob *k, char to[WORDS])
{
    if (k->names)
        return k->names[(int)k->default_value];
    snprintf(to, WORDS, "%g", k->default_value);
    return to;
}

static void write_policies(struct sh_out *o)
{
    sh_out_list(o, "policies", "eviction policies");
    for (int i = 0; sh_policies[i]; i++) {
        const struct sh_policy *p = sh_policies[i];
        struct sh_policy_spec usual;
        struct sh_err unused;
        char needs[WORDS], knobs[SH_POLICY_TEXT];
        int known = !sh_policy_parse(p->name, &usual, &unused);
        sh_out_item(o);
        sh_out_text(o, "policy", "policy", p->name);
        sh_out_text(o, "needs", "needs", needs_text(p, needs));
        sh_out_bool(o, "one_pass", "one pass", known && sh_policy_is_stack(&usual));
        sh_out_bool(o, "is_bound", "bound", (p->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND)) != 0);
        sh_out_text(o, "knobs", "knobs", known ? sh_policy_knobs(&usual, knobs) : "");
        sh_out_detail(o);
        sh_out_text(o, "summary", "what it does", p->summary);
    }
    sh_out_end(o);
}

static void write_knobs(struct sh_out *o)
{
    sh_out_list(o, "knobs", "their knobs");
    for (int i = 0; sh_policies[i]; i++)
        for (const struct sh_knob *k = sh_policies[i]->knobs; k && k->name; k++) {
            char values[WORDS], start[WORDS];
            sh_out_item(o);
            sh_out_text(o, "policy", "policy", sh_policies[i]->name);
            sh_out_text(o, "knob", "knob", k->name);
            sh_out_text(o, "default", "default", start_text(k, start));
            sh_out_text(o, "values", "values", values_text(k, values));
            sh_out_text(o, "help", "meaning", k->help);
        }
    sh_out_end(o);
}

int sh_info_policies(const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    write_policies(o);
    write_knobs(o);
    sh_out_note(o, "one pass: with default knobs, one pass over a trace gives all budgets.\n"
                   "bound: uses future attention, so no live cache can run it.\n"
                   "A trace has keys, values and queries if it was made with --vectors qkv.\n"
                   "Set knobs as in --policy h2o:recent=10,sinks=4.");
    return sh_common_write(common, o, 0, e);
}
