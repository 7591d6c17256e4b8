/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy: what it drops is what an independent implementation drops (tests/oracle/policies.py), and
 * it keeps the law of planner/policy/policy.h. A policy that the golden file does not know fails. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/state.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/policy_story.h"
#include "tests/unit/tried_policies.h"

static struct sh_err e;

enum { LONGEST = 60 };

static int whole(const json_t *o, const char *key)
{
    return (int)json_integer_value(json_object_get(o, key));
}

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void play(const json_t *root, const json_t *c)
{
    static const char symbols[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const json_t *how = json_array_get(json_object_get(root, "scenarios"),
                                       (size_t)json_integer_value(json_array_get(c, 1)));
    const char *policy = json_string_value(json_array_get(c, 0)), *want = json_string_value(json_array_get(c, 4));
    int budget = (int)json_integer_value(json_array_get(c, 3)), leaves[LONGEST], off = 0;
    struct story s = {.kind = text_of(how, "kind"), .group = whole(how, "group"), .prefill = whole(how, "prefill"),
                      .window = whole(how, "window"), .n_token = whole(root, "n_token"),
                      .d_head = whole(root, "d_head"), .layer = whole(root, "layer"), .head = whole(root, "head"),
                      .rows = strcmp(text_of(how, "rows"), "recorded") ? SH_ROWS_RENORMALISED : SH_ROWS_RECORDED,
                      .seed = (uint64_t)json_integer_value(json_array_get(c, 2))};
    struct sh_policy_spec spec;
    CU_ASSERT_FATAL(s.n_token == LONGEST && s.group <= 8 && want && strlen(want) == LONGEST);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    story_tell(&s);
    CU_ASSERT_EQUAL(story_replay(&s, &spec, budget, leaves, NULL), 0);
    for (int j = 0; j < s.n_token; j++)
        off += want[j] != (leaves[j] < 0 ? '.' : symbols[leaves[j]]);
    if (off)
        printf("# %s at %d, rows %s (seed %d): %d tokens differ\n", policy, budget, s.kind, (int)s.seed, off);
    CU_ASSERT_EQUAL(off, 0);
    story_free(&s);
}

/* The knobs of a policy as they are before anybody sets one, in any order. */
static void compare_defaults(const struct sh_policy *p, const json_t *want)
{
    struct sh_policy_spec spec;
    char knobs[SH_POLICY_TEXT], padded[SH_POLICY_TEXT + 2], item[64];
    size_t n = 0, i;
    json_t *v;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(p->name, &spec, &e), 0);
    snprintf(padded, sizeof padded, ",%s,", sh_policy_knobs(&spec, knobs));
    for (; p->knobs && p->knobs[n].name; n++)
        ;
    CU_ASSERT_EQUAL(json_array_size(want), n);
    json_array_foreach(want, i, v) {
        snprintf(item, sizeof item, ",%s,", json_string_value(v));
        if (!strstr(padded, item))
            printf("# %s has %s, expected %s\n", p->name, knobs, item);
        CU_ASSERT_PTR_NOT_NULL(strstr(padded, item));
    }
}

static void golden(void)
{
    json_error_t error;
    const char *path = tap_golden("policies/rivals.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_t *root = json_load_file(path, 0, &error), *cases = json_object_get(root, "cases"), *c;
    size_t i;
    CU_ASSERT_FATAL(root && json_array_size(cases) > 1000);
    for (int p = 0; sh_policies[p]; p++) {
        size_t length = strlen(sh_policies[p]->name), n = 0;
        if (sh_policies[p]->needs & SH_IS_BOUND)        /* keeps nothing from row to row: test_replay_stack */
            continue;
        json_array_foreach(cases, i, c) {
            const char *name = json_string_value(json_array_get(c, 0));
            n += strcspn(name, ":") == length && !memcmp(name, sh_policies[p]->name, length);
        }
        if (n < 10)
            printf("# %s: found %d golden cases, expected at least 10: tests/oracle/policies.py makes them\n",
                   sh_policies[p]->name, (int)n);
        CU_ASSERT(n >= 10);
        compare_defaults(sh_policies[p], json_object_get(json_object_get(root, "defaults"), sh_policies[p]->name));
    }
    json_array_foreach(cases, i, c)
        play(root, c);
    json_decref(root);
}

static const struct story stories[] = {
    {.kind = "random", .group = 2, .n_token = LONGEST, .d_head = 10, .seed = 7},
    {.kind = "sinks", .group = 1, .n_token = LONGEST, .prefill = 25, .d_head = 3, .rows = SH_ROWS_RECORDED, .seed = 8},
    {.kind = "random", .group = 1, .n_token = LONGEST, .window = 18, .d_head = 1, .seed = 9},
    {.kind = "ties", .group = 1, .n_token = LONGEST, .d_head = 4, .rows = SH_ROWS_RECORDED, .seed = 10},
    {.kind = "onehot", .group = 2, .n_token = LONGEST, .prefill = 20, .d_head = 4, .seed = 11}};
enum { N_STORY = sizeof stories / sizeof *stories };

typedef void law(const struct story *s, const struct sh_policy_spec *p);

/* The law for every policy with every story. */
static void each(law *holds)
{
    for (int i = 0; tried_policies[i]; i++)
        for (int k = 0; k < N_STORY; k++) {
            struct story s = stories[k];
            struct sh_policy_spec spec;
            CU_ASSERT_EQUAL_FATAL(sh_policy_parse(tried_policies[i], &spec, &e), 0);
            story_tell(&s);
            holds(&s, &spec);
            story_free(&s);
        }
}

static void all_tried(void)
{
    for (int n = 0; sh_policies[n]; n++) {
        size_t length = strlen(sh_policies[n]->name);
        int seen = (sh_policies[n]->needs & SH_IS_BOUND) != 0;
        for (int i = 0; tried_policies[i]; i++)
            seen |= strcspn(tried_policies[i], ":") == length &&
                    !memcmp(tried_policies[i], sh_policies[n]->name, length);
        if (!seen)
            printf("# %s is not in tests/unit/tried_policies.c\n", sh_policies[n]->name);
        CU_ASSERT(seen);
    }
}

static int leaver(const int *leaves, int n)
{
    for (int j = 0; j < n; j++)
        if (leaves[j] >= 0)
            return 1;
    return 0;
}

static void ample(const struct story *s, const struct sh_policy_spec *p)
{
    int leaves[LONGEST];
    struct sh_replay_sums sums;
    if (s->window)
        return;
    CU_ASSERT_EQUAL(story_replay(s, p, s->n_token, leaves, &sums), 0);
    CU_ASSERT_FALSE(leaver(leaves, s->n_token));
    CU_ASSERT_DOUBLE_EQUAL(sums.sum[SH_KEPT_MASS], s->n_token, 1e-5);
}

static void ample_budget(void)
{
    each(ample);
}

/* Nobody protected leaves, at most the budget stays after the prompt, and something leaves at all. */
static void protects(const struct story *s, const struct sh_policy_spec *p)
{
    int leaves[LONGEST], at_least = sh_policy_least_budget(p), keeps = !strcmp(p->policy->name, "full");
    int sinks = (int)sh_policy_knob(p, "sinks", 0), recent = (int)sh_policy_knob(p, "recent", 0);
    for (int budget = at_least; budget <= at_least + 20; budget += 10) {
        int room = s->window && s->window < budget ? s->window : budget;
        CU_ASSERT_EQUAL(story_replay(s, p, budget, leaves, NULL), 0);
        for (int j = 0; j < s->n_token && !keeps; j++) {
            int dead = s->window && leaves[j] >= 0 && j < leaves[j] + 1 - s->window;
            CU_ASSERT(leaves[j] < 0 || dead || (j >= sinks && j < leaves[j] - recent));
        }
        for (int t = s->prefill; t < s->n_token && !keeps; t++) {
            int n = 0;
            for (int j = 0; j <= t; j++)
                n += leaves[j] < 0 || leaves[j] > t;
            CU_ASSERT(n >= 1 && n <= room);
        }
        CU_ASSERT_EQUAL(leaver(leaves, s->n_token), !keeps || s->window > 0);
    }
}

static void protected_tokens(void)
{
    each(protects);
}

static void repeats(const struct story *s, const struct sh_policy_spec *p)
{
    int a[LONGEST], b[LONGEST], budget = sh_policy_least_budget(p) + 8;
    struct sh_replay_sums x, y;
    CU_ASSERT_EQUAL(story_replay(s, p, budget, a, &x), 0);
    CU_ASSERT_EQUAL(story_replay(s, p, budget, b, &y), 0);
    CU_ASSERT(!memcmp(a, b, sizeof a) && !memcmp(x.sum, y.sum, sizeof x.sum));
}

static void deterministic(void)
{
    each(repeats);
}

/* Other rows and vectors from token `from` on: what leaves until it comes is the same. */
static void looks_back(const struct story *s, const struct sh_policy_spec *p)
{
    int a[LONGEST], b[LONGEST], from = 40, budget = sh_policy_least_budget(p) + 8;
    struct story other = *s;
    if (p->policy->needs & SH_NEEDS_FUTURE)
        return;
    other.kind = "random";
    story_tell(&other);
    memcpy(other.row, s->row, sizeof(float) * (size_t)(s->n_token * s->n_token * s->group));
    memcpy(other.k, s->k, sizeof(float) * (size_t)(s->n_token * s->d_head));
    memcpy(other.v, s->v, sizeof(float) * (size_t)(s->n_token * s->d_head));
    memcpy(other.q, s->q, sizeof(float) * (size_t)(s->n_token * s->d_head * s->group));
    story_change(&other, from);
    CU_ASSERT_NOT_EQUAL(memcmp(other.k, s->k, sizeof(float) * (size_t)(s->n_token * s->d_head)), 0);
    CU_ASSERT_EQUAL(story_replay(s, p, budget, a, NULL), 0);
    CU_ASSERT_EQUAL(story_replay(&other, p, budget, b, NULL), 0);
    for (int j = 0; j < from; j++) {
        int before = a[j] >= 0 && a[j] <= from, also = b[j] >= 0 && b[j] <= from;
        CU_ASSERT(before == also && (!before || a[j] == b[j]));
    }
    story_free(&other);
}

static void causal(void)
{
    each(looks_back);
}

/* Another future must change what the oracle does: else the test above could not fail either. */
static void foresight(void)
{
    struct story s = stories[0], other = stories[0];
    struct sh_policy_spec p;
    int a[LONGEST], b[LONGEST], differ = 0;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("oracle", &p, &e), 0);
    story_tell(&s);
    story_tell(&other);
    story_change(&other, 40);
    CU_ASSERT_EQUAL(story_replay(&s, &p, 12, a, NULL), 0);
    CU_ASSERT_EQUAL(story_replay(&other, &p, 12, b, NULL), 0);
    for (int j = 0; j < 40; j++)
        differ += a[j] != b[j] && a[j] >= 0 && a[j] <= 40;
    CU_ASSERT(differ > 0);
    story_free(&s);
    story_free(&other);
}

/* Whoever a cache keeps, one with room for one more keeps, at every budget. */
static void nests(const struct story *s, const struct sh_policy_spec *p)
{
    int small[LONGEST], large[LONGEST];
    struct story recorded = *s;
    if (!sh_policy_is_stack(p))
        return;
    recorded.rows = SH_ROWS_RECORDED;
    for (int budget = sh_policy_least_budget(p); budget <= s->n_token; budget++) {
        CU_ASSERT_EQUAL(story_replay(&recorded, p, budget, large, NULL), 0);
        for (int j = 0; j < s->n_token && budget > sh_policy_least_budget(p); j++)
            CU_ASSERT(large[j] < 0 || (small[j] >= 0 && small[j] <= large[j]));
        memcpy(small, large, sizeof small);
    }
}

static void nested(void)
{
    each(nests);
}

/* The cache as a model drives it: vectors by slot, written when the slot is known, and used again for
 * the next sequence. */
static void drive(struct sh_kept *k, const struct story *s, float *keys, float *values, int *leaves)
{
    const struct sh_cache *c = sh_kept_cache(k);
    size_t d = (size_t)s->d_head;
    for (int t = 0; t < s->n_token; t++) {
        float row[LONGEST], q[8 * 16], future[LONGEST];
        int dropped[LONGEST], held[LONGEST];
        for (int i = 0; i < c->n_slot; i++)
            held[i] = c->pos[i];
        for (int j = 0; j < t; j++)
            future[j] = (float)story_future(s, t, j);
        int n = sh_kept_make_room(k, t, future, dropped), slot = sh_kept_admit(k, t);
        for (int i = 0; i < n; i++)
            leaves[held[dropped[i]]] = t;
        leaves[t] = -1;
        memcpy(keys + (size_t)slot * d, s->k + (size_t)t * d, d * sizeof(float));
        memcpy(values + (size_t)slot * d, s->v + (size_t)t * d, d * sizeof(float));
        for (int i = 0; i < c->n_slot; i++)
            row[i] = c->pos[i] < 0 ? 0 : story_score(s, t, c->pos[i]);
        for (int g = 0; g < s->group; g++)
            memcpy(q + (size_t)g * d, s->q + (size_t)(g * s->n_token + t) * d, d * sizeof(float));
        struct sh_step step = {.t = t, .n_row = c->n, .row = row, .q = q, .n_query = s->group};
        sh_kept_observe(k, &step);
    }
}

static void slots(const struct story *s, const struct sh_policy_spec *p)
{
    float keys[LONGEST * 16], values[LONGEST * 16];
    int want[LONGEST], got[LONGEST], again[LONGEST], budget = sh_policy_least_budget(p) + 8;
    struct story recorded = *s;
    struct sh_kept_setup setup = {.spec = p, .budget = budget, .prefill = s->prefill, .window = s->window,
                                  .n_token = s->n_token, .layer = s->layer, .head = s->head, .n_layer = s->layer + 1,
                                  .k = keys, .v = values, .d_head = s->d_head, .rows_by_slot = 1, .seed = s->seed};
    struct sh_kept *k = sh_kept_new(&setup);
    CU_ASSERT_FATAL(sh_kept_cache(k)->head->capacity <= LONGEST && s->d_head <= 16 && s->group <= 8);
    recorded.rows = SH_ROWS_RECORDED;
    CU_ASSERT_EQUAL(story_replay(&recorded, p, budget, want, NULL), 0);
    for (int i = 0; i < LONGEST * 16; i++)
        keys[i] = values[i] = 1e6f;                             /* what an unwritten slot may hold */
    drive(k, s, keys, values, got);
    sh_kept_restart(k, keys, values);
    drive(k, s, keys, values, again);
    CU_ASSERT(!memcmp(want, got, sizeof want) && !memcmp(want, again, sizeof want));
    struct sh_policy_head head = {.knob = p->knob, .budget = budget, .capacity = sh_kept_cache(k)->head->capacity,
                                  .n_token = s->n_token, .d_head = s->d_head, .n_layer = 1};
    CU_ASSERT(sh_kept_policy_bytes(k) <= sh_state_bytes(p->policy, &head));
    sh_kept_free(k);
}

static void by_slot(void)
{
    each(slots);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"what leaves, against an independent implementation", golden},
        {"every policy is tried", all_tried},
        {"a budget as long as the text keeps everything", ample_budget},
        {"protected tokens stay, the budget holds, the cache is never empty", protected_tokens},
        {"two runs are the same", deterministic},
        {"the future changes nothing before", causal},
        {"but for the oracle", foresight},
        {"stack policies' kept sets are nested in the budget", nested},
        {"vectors by slot, and a cache used again", by_slot},
        {NULL, NULL}};
    return tap_run("policies", tests);
}
