/* SPDX-License-Identifier: Apache-2.0 */
/* shears_evictor_...: a cache elsewhere keeps what an independent implementation of every policy keeps
 * (tests/oracle/policies.py), however its tokens are cut into calls; and what a caller may do wrong. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/lib/shears.h"
#include "tests/tap.h"
#include "tests/unit/policy_story.h"

enum { LONGEST = 60, HEADS = 2, GROUPS = 8 };

struct cut {                            /* how a text comes                                       */
    int at_once, tile;                  /* tokens of a call, tokens whose rows are read together  */
    int copied;                         /* the token at which a copy goes on; 0: none             */
};

static int whole(const json_t *o, const char *key)
{
    return (int)json_integer_value(json_object_get(o, key));
}

/* What query t gives to the tokens in a head's slots: the mean of the group's rows, in replay's order of sums, so that
 * ties are ties. Returns n_row. */
static int make_row(const struct story *s, int t, const int *pos, int n_slot, float *row)
{
    int first = s->window && t + 1 > s->window ? t + 1 - s->window : 0, n = 0;
    memset(row, 0, (size_t)n_slot * sizeof *row);
    for (int g = 0; g < s->group; g++) {
        const float *own = s->row + ((size_t)t * (size_t)s->group + (size_t)g) * (size_t)s->n_token;
        float lane[16] = {0};
        double mass = 0;
        for (int i = 0; i < n_slot; i++)
            lane[i % 16] += pos[i] >= first && pos[i] <= t ? own[pos[i] - first] : 0;
        for (int i = 0; i < 16; i++)
            mass += (double)lane[i];
        double scale = s->rows == SH_ROWS_RENORMALISED && mass > 0 ? 1 / (mass * s->group) : 1.0 / s->group;
        for (int i = 0; i < n_slot; i++)
            row[i] += pos[i] >= first && pos[i] <= t ? own[pos[i] - first] * (float)scale : 0;
    }
    for (int i = 0; i < n_slot; i++)
        n += pos[i] >= first && pos[i] <= t;
    return n;
}

/* Rows of n tokens from t on, and their vectors; the answer is of `from` on. */
static void read_some(const struct story *s, struct shears_evictor *x, const struct shears_evictor_next *next, int t,
                      int n)
{
    struct shears_error *e = NULL;
    size_t d = (size_t)s->d_head, group = (size_t)s->group, slots = (size_t)next->n_slot, all = (size_t)(HEADS * n);
    float *row = xmalloc(all * slots * sizeof *row), *q = xmalloc(all * group * d * sizeof *q);
    float *k = xmalloc(all * d * sizeof *k), *v = xmalloc(all * d * sizeof *v);
    int seen[HEADS * LONGEST];
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < n; i++) {
            size_t at = (size_t)(h * n + i), token = (size_t)(t + i);
            seen[at] = make_row(s, t + i, next->pos + (size_t)h * slots, next->n_slot, row + at * slots);
            memcpy(k + at * d, s->k + token * d, d * sizeof *k);
            memcpy(v + at * d, s->v + token * d, d * sizeof *v);
            for (size_t g = 0; g < group; g++)
                memcpy(q + (at * group + g) * d, s->q + (g * (size_t)s->n_token + token) * d, d * sizeof *q);
        }
    const struct shears_evictor_rows rows = {.n = n, .n_slot = next->n_slot, .n_query = s->group, .row = row,
                                             .seen = seen, .q = q, .k = k, .v = v};
    CU_ASSERT_EQUAL_FATAL(shears_evictor_read(x, s->layer, &rows, &e), 0);
    free(row);
    free(q);
    free(k);
    free(v);
}

/* Tokens of the head that are in no slot have left before `t`. Slots hold each token once. */
static void note_leaves(const int *pos, int n_slot, int t, int *leaves)
{
    for (int j = 0; j < t; j++) {
        int live = 0;
        for (int i = 0; i < n_slot; i++)
            live += pos[i] == j;
        CU_ASSERT(live <= 1 && !(live && leaves[j] >= 0));
        if (!live && leaves[j] < 0)
            leaves[j] = t;
    }
}

static void run(const struct story *s, struct shears_evictor **x, const struct cut *cut, int *leaves)
{
    struct shears_error *e = NULL;
    struct shears_evictor_next next;
    struct shears_evictor_moved moved;
    for (int t = 0, end; t < s->n_token; t = end) {
        end = t + cut->at_once < s->n_token ? t + cut->at_once : s->n_token;
        while (t < end) {
            CU_ASSERT_EQUAL_FATAL(shears_evictor_next(*x, s->layer, end - t, &next, &e), 0);
            CU_ASSERT_FATAL(next.n >= 1 && next.n <= end - t && next.kv_heads == HEADS);
            for (int i = 0; i < HEADS * next.n; i++)
                CU_ASSERT_EQUAL(next.pos[i / next.n * next.n_slot + next.slot[i]], t + i % next.n);
            note_leaves(next.pos + s->head * next.n_slot, next.n_slot, t, leaves);
            for (int i = 0, n; i < next.n; i += n) {
                n = next.n - i < cut->tile ? next.n - i : cut->tile;
                read_some(s, *x, &next, t + i, n);
            }
            t += next.n;
        }
        CU_ASSERT_EQUAL_FATAL(shears_evictor_settle(*x, s->layer, &moved, &e), 0);
        if (cut->copied && t >= cut->copied && t - cut->at_once < cut->copied) {
            struct shears_evictor *copy = shears_evictor_copy(*x, &e);
            shears_evictor_free(*x);
            *x = copy;
        }
    }
}

static int is_future(const char *policy)
{
    return !strncmp(policy, "oracle", 6);
}

/* [policy, scenario, seed, budget, when each token leaves] */
static int play(const json_t *root, const json_t *c, const struct cut *cut)
{
    static const char symbols[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const json_t *how = json_array_get(json_object_get(root, "scenarios"),
                                       (size_t)json_integer_value(json_array_get(c, 1)));
    const char *policy = json_string_value(json_array_get(c, 0)), *want = json_string_value(json_array_get(c, 4));
    const char *rows = json_string_value(json_object_get(how, "rows"));
    struct story s = {.kind = json_string_value(json_object_get(how, "kind")), .group = whole(how, "group"),
                      .prefill = whole(how, "prefill"), .window = whole(how, "window"),
                      .n_token = whole(root, "n_token"), .d_head = whole(root, "d_head"),
                      .layer = whole(root, "layer"), .head = whole(root, "head"),
                      .rows = strcmp(rows, "recorded") ? SH_ROWS_RENORMALISED : SH_ROWS_RECORDED,
                      .seed = (uint64_t)json_integer_value(json_array_get(c, 2))};
    char budget[16];
    int leaves[LONGEST], off = 0;
    struct shears_error *e = NULL;
    snprintf(budget, sizeof budget, "%d", (int)json_integer_value(json_array_get(c, 3)));
    CU_ASSERT_FATAL(s.n_token == LONGEST && s.head < HEADS && s.group <= GROUPS);
    const struct shears_evictor_setup setup = {
        .bytes = sizeof setup, .policy = policy, .budget = *budget == '0' ? NULL : budget, .layers = s.layer + 1,
        .kv_heads = HEADS, .length = s.n_token, .prefill = s.prefill, .seed = s.seed};
    struct shears_evictor *x = shears_evictor_open(&setup, &e);
    if (!x) {                           /* decides at the end of a prompt, and there is none */
        int good = !s.prefill && strstr(shears_error_message(e), "end of the prompt");
        shears_error_free(e);
        CU_ASSERT(good);
        return 0;
    }
    story_tell(&s);
    for (int j = 0; j < s.n_token; j++)
        leaves[j] = -1;
    CU_ASSERT_EQUAL_FATAL(shears_evictor_layer(x, s.layer, HEADS, s.d_head, s.window, &e), 0);
    run(&s, &x, cut, leaves);
    for (int j = 0; j < s.n_token; j++)
        off += want[j] != (leaves[j] < 0 ? '.' : symbols[leaves[j]]);
    if (off)
        printf("# %s at %s, %s, %d at once: %d tokens differ\n", policy, budget, s.kind, cut->at_once, off);
    CU_ASSERT_EQUAL(off, 0);
    story_free(&s);
    shears_evictor_free(x);
    return 1;
}

static void play_all(const struct cut *cut, size_t every)
{
    json_error_t error;
    const char *path = tap_golden("policies/rivals.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_t *root = json_load_file(path, 0, &error), *cases = json_object_get(root, "cases"), *c;
    size_t i, played = 0;
    CU_ASSERT_FATAL(root && json_array_size(cases) > 1000);
    json_array_foreach(cases, i, c)
        if (i % every == 0 && !is_future(json_string_value(json_array_get(c, 0))))
            played += (size_t)play(root, c, cut);
    CU_ASSERT(played > 700 / every);
    json_decref(root);
}

static void test_golden(void)
{
    play_all(&(struct cut){.at_once = 1, .tile = 1}, 1);
}

/* leaves are noted when a call begins: calls of which each ends where room is made. */
static void test_cut(void)
{
    play_all(&(struct cut){.at_once = LONGEST, .tile = 7, .copied = 0}, 2);
    play_all(&(struct cut){.at_once = 13, .tile = 13, .copied = 39}, 2);
}

/* ---- what a caller may do wrong ---- */

static int is_refused(int failed, struct shears_error **e, enum shears_status status, const char *what)
{
    int good = failed && *e && shears_error_status(*e) == status && strstr(shears_error_message(*e), what);
    if (failed && *e && !good)
        printf("# found: %s\n", shears_error_message(*e));
    shears_error_free(*e);
    *e = NULL;
    return good;
}

static const struct shears_evictor_setup plain = {.bytes = sizeof plain, .policy = "h2o:recent=2", .budget = "4",
                                                  .layers = 2, .kv_heads = 2, .length = 10, .prefill = 0};

static void test_setups(void)
{
    static const struct {
        const char *policy, *budget, *plan;
        int layers, kv_heads, length, prefill;
        const char *what;
    } bad[] = {
        {"h2o", "4", NULL, 0, 1, 1, 0, "layers"},
        {"h2o", "4", NULL, 1 << 30, 1, 1, 0, "layers"},
        {"h2o", "4", NULL, 1, 0, 1, 0, "KV heads"},
        {"h2o", "4", NULL, 1, 1, 0, 0, "length"},
        {"h2o", "4", NULL, 1, 1, 1, -2, "prefill"},
        {NULL, NULL, NULL, 1, 1, 1, 0, "policy: found none"},
        {"h2o", NULL, NULL, 1, 1, 1, 0, "budget: found none"},
        {"h20", "4", NULL, 1, 1, 1, 0, "h20"},
        {"h2o:recent=9", "4", NULL, 1, 1, 99, 0, "protected"},
        {"h2o", "4,5", NULL, 1, 1, 9, 0, "2 budgets"},
        {"h2o", "-4", NULL, 1, 1, 9, 0, "budget"},
        {"oracle", "4", NULL, 1, 1, 9, 0, "future"},
        {"observed", "4", NULL, 1, 1, 9, 0, "prompt"},
        {"h2o", NULL, "p", 1, 1, 9, 0, "plan"}};
    struct shears_error *e = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct shears_evictor_setup s = {.bytes = sizeof s, .policy = bad[i].policy, .budget = bad[i].budget,
                                         .plan = bad[i].plan, .layers = bad[i].layers, .kv_heads = bad[i].kv_heads,
                                         .length = bad[i].length, .prefill = bad[i].prefill};
        CU_ASSERT(is_refused(!shears_evictor_open(&s, &e), &e, SHEARS_MISUSED, bad[i].what));
    }
    struct shears_evictor_setup s = plain;
    s.bytes = 8;
    CU_ASSERT(is_refused(!shears_evictor_open(&s, &e), &e, SHEARS_MISUSED, "8 bytes"));
    s = plain;
    s.policy = s.budget = NULL;
    s.plan = "/nowhere/plan.json";
    CU_ASSERT(is_refused(!shears_evictor_open(&s, &e), &e, SHEARS_FAILED, "/nowhere/plan.json"));
    CU_ASSERT(is_refused(!shears_evictor_open(NULL, &e), &e, SHEARS_MISUSED, "NULL"));
}

static void test_nothing(void)
{
    struct shears_error *e = NULL;
    struct shears_evictor_next next;
    struct shears_evictor_moved moved;
    const struct shears_evictor_rows rows = {.n = 1};
    CU_ASSERT(is_refused(!shears_evictor_copy(NULL, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_needs(NULL, &e) < 0, &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_prefill(NULL, &e) < 0, &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_layer(NULL, 0, 1, 1, 0, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_next(NULL, 0, 1, &next, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_read(NULL, 0, &rows, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_settle(NULL, 0, &moved, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_budget(NULL, 0, 0, &e) < 0, &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_kept(NULL, 0, 0, NULL, 0, &e) < 0, &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT_EQUAL(shears_evictor_bytes(NULL), 0);
    shears_evictor_free(NULL);
}

static void test_calls(void)
{
    struct shears_error *e = NULL;
    struct shears_evictor_next next;
    struct shears_evictor_moved moved;
    struct shears_evictor *x = shears_evictor_open(&plain, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    CU_ASSERT_EQUAL(shears_evictor_needs(x, &e), SHEARS_NEEDS_SCORES);
    CU_ASSERT(is_refused(shears_evictor_next(x, 0, 1, &next, &e), &e, SHEARS_MISUSED, "KV heads were not set"));
    CU_ASSERT(is_refused(shears_evictor_next(x, -1, 1, &next, &e), &e, SHEARS_MISUSED, "layer -1"));
    CU_ASSERT(is_refused(shears_evictor_layer(x, 2, 1, 4, 0, &e), &e, SHEARS_MISUSED, "layer 2"));
    CU_ASSERT(is_refused(shears_evictor_layer(x, 0, 3, 4, 0, &e), &e, SHEARS_MISUSED, "3 KV heads"));
    CU_ASSERT(is_refused(shears_evictor_layer(x, 0, 1, 1 << 30, 0, &e), &e, SHEARS_MISUSED, "numbers"));
    CU_ASSERT_EQUAL(shears_evictor_layer(x, 0, 1, 4, 0, &e), 0);
    CU_ASSERT_EQUAL(shears_evictor_layer(x, 0, 1, 4, 0, &e), 0);
    CU_ASSERT(is_refused(shears_evictor_layer(x, 0, 2, 4, 0, &e), &e, SHEARS_MISUSED, "as before"));
    CU_ASSERT(is_refused(shears_evictor_next(x, 0, 0, &next, &e), &e, SHEARS_MISUSED, "0 tokens"));
    CU_ASSERT(is_refused(shears_evictor_next(x, 0, 1, NULL, &e), &e, SHEARS_MISUSED, "NULL"));
    CU_ASSERT(is_refused(shears_evictor_settle(x, 1, &moved, &e), &e, SHEARS_MISUSED, "layer 1"));
    float row[16] = {1};
    int seen[4] = {1, 1, 1, 1}, kept[8];
    struct shears_evictor_rows r = {.n = 1, .n_slot = 1, .n_query = 1, .row = row, .seen = seen};
    CU_ASSERT(is_refused(shears_evictor_read(x, 0, &r, &e), &e, SHEARS_MISUSED, "expected 1 to 0"));
    CU_ASSERT_EQUAL_FATAL(shears_evictor_next(x, 0, 9, &next, &e), 0);
    CU_ASSERT(next.n == 4 && next.n_slot == 4);         /* the budget */
    r.n = 5;
    CU_ASSERT(is_refused(shears_evictor_read(x, 0, &r, &e), &e, SHEARS_MISUSED, "5 tokens"));
    r.n = 4;
    CU_ASSERT(is_refused(shears_evictor_read(x, 0, &r, &e), &e, SHEARS_MISUSED, "slots"));
    r.n_slot = 4;
    r.row = NULL;
    CU_ASSERT(is_refused(shears_evictor_read(x, 0, &r, &e), &e, SHEARS_MISUSED, "h2o needs"));
    r.row = row;
    row[3] = NAN;
    CU_ASSERT(is_refused(shears_evictor_read(x, 0, &r, &e), &e, SHEARS_FAILED, "nan"));
    row[3] = 0;
    CU_ASSERT_EQUAL(shears_evictor_read(x, 0, &r, &e), 0);
    CU_ASSERT_EQUAL(shears_evictor_kept(x, 0, 0, kept, 8, &e), 4);
    CU_ASSERT(kept[0] == 0 && kept[3] == 3 && shears_evictor_budget(x, 0, 0, &e) == 4);
    CU_ASSERT(is_refused(shears_evictor_kept(x, 0, 1, kept, 8, &e) < 0, &e, SHEARS_MISUSED, "head 1"));
    CU_ASSERT(shears_evictor_bytes(x) > 0);
    shears_evictor_free(x);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"what every policy keeps, token by token", test_golden},
        {"the same in longer calls, and by a copy", test_cut},
        {"setups that make no sense", test_setups},
        {"NULL is an error everywhere", test_nothing},
        {"calls that make no sense", test_calls},
        {0}};
    return tap_run("evictor", tests);
}
