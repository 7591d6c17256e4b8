/* SPDX-License-Identifier: Apache-2.0 */
/* Replay against the fixtures' reference: for every policy of offline.json, which token leaves at which
 * step (exactly) and how much of each row the kept tokens have (1e-5). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/replay/replay.h"
#include "src/base/mem.h"
#include "src/model/weights.h"
#include "tests/tap.h"

static struct sh_err e;

struct trial {                          /* a case of offline.json, one head at a time */
    char name[96];
    const json_t *params;
    struct sh_policy_spec spec;
    const float *attention;             /* [layer][q_head][T (T + 1) / 2], the causal half */
    const int32_t *evict_step;          /* [layer][kv_head][T] */
    const float *recall;                /* [layer][q_head][T] */
    int n_layer, n_head, n_kv_head, n_token, prefill, budget;
    enum sh_rows rows;
    int *seen;                          /* [T]: the step that dropped a token, as watched; -1 */
    int wrong;
};

static int whole(const json_t *o, const char *key, int otherwise)
{
    const json_t *v = json_object_get(o, key);
    return v ? (int)json_integer_value(v) : otherwise;
}

/* The policy as a person would write it. */
static void parse_spec(struct trial *c, const json_t *j)
{
    char text[256];
    const char *policy = json_string_value(json_object_get(j, "policy")), *key;
    json_t *v;
    int n = snprintf(text, sizeof text, "%s", policy), first = 1;
    c->params = json_object_get(j, "params");
    json_object_foreach((json_t *)c->params, key, v) {
        if (!strncmp(key, "budget", 6))
            continue;
        const char *knob = !strcmp(key, "history_window") ? "window" : key;
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%s=", first ? ':' : ',', knob);
        n += json_is_string(v) ? snprintf(text + n, sizeof text - (size_t)n, "%s", json_string_value(v))
                               : snprintf(text + n, sizeof text - (size_t)n, "%d", (int)json_integer_value(v));
        first = 0;
    }
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(text, &c->spec, &e), 0);
}

/* A copy, aligned, of a tensor of three dimensions. */
static void *tensor(struct sh_weights *file, const char *name, const char *what, const size_t **shape)
{
    char full[160];
    snprintf(full, sizeof full, "%s.%s", name, what);
    const struct sh_stored *t = sh_weights_find(file, full);
    CU_ASSERT_FATAL(t && t->rank == 3 && t->bytes == 4 * t->shape[0] * t->shape[1] * t->shape[2]);
    void *copy = xmalloc(t->bytes);
    memcpy(copy, t->at, t->bytes);
    *shape = t->shape;
    return copy;
}

static void watch(void *to, int cell, int t, const struct sh_cache *c)
{
    struct trial *trial = to;
    int live = 0;
    (void)cell;
    for (int j = 0; j <= t; j++) {
        int kept = 0;
        for (int i = 0; i < c->n_slot; i++)
            kept |= c->pos[i] == j;
        live += kept;
        if (!kept && trial->seen[j] < 0)
            trial->seen[j] = t;
        trial->wrong += kept && trial->seen[j] >= 0;            /* nobody comes back */
    }
    trial->wrong += live != c->n;
}

static void replay_head(struct trial *c, int layer, int head)
{
    int n = c->n_token, group = c->n_head / c->n_kv_head;
    struct sh_replay_cell cell = {&c->spec, c->budget};
    struct sh_replay_setup setup = {.n_token = n, .prefill = c->prefill, .layer = layer, .head = head,
                                    .n_layer = c->n_layer, .group = group, .rows = c->rows};
    struct sh_replay *r = sh_replay_new(&setup, &cell, 1);
    const int32_t *want = c->evict_step + (layer * c->n_kv_head + head) * n;
    double before = 0, off = 0;
    for (int j = 0; j < n; j++)
        c->seen[j] = -1;
    sh_replay_set_watch(r, watch, c);
    for (int t = 0; t < n; t++) {
        const float *rows[16];
        double recall = 0;
        for (int g = 0; g < group; g++) {
            size_t q_head = (size_t)(layer * c->n_head + head * group + g);
            rows[g] = c->attention + q_head * (size_t)(n * (n + 1) / 2) + t * (t + 1) / 2;
            recall += (double)c->recall[q_head * (size_t)n + (size_t)t] / group;
        }
        CU_ASSERT_EQUAL_FATAL(sh_replay_row(r, t, 0, rows, &e), 0);
        double mass = sh_replay_sums(r, 0)->sum[SH_KEPT_MASS];
        off = fmax(off, fabs(mass - before - recall));
        before = mass;
    }
    CU_ASSERT(off < 1e-5);
    for (int j = 0; j < n; j++)
        c->wrong += c->seen[j] != want[j];
    sh_replay_free(r);
}

static void replay_case(const json_t *j, struct sh_weights *file, struct sh_weights *rows)
{
    struct trial c = {.rows = strcmp(json_string_value(json_object_get(j, "rows")), "recorded") ? SH_ROWS_RENORMALISED
                                                                                               : SH_ROWS_RECORDED};
    const size_t *shape, *kv_shape, *half;
    snprintf(c.name, sizeof c.name, "%s", json_string_value(json_object_get(j, "name")));
    parse_spec(&c, j);
    float *recall = tensor(file, c.name, "recall", &shape), *attention =
        tensor(rows, json_string_value(json_object_get(j, "checkpoint")),
               json_string_value(json_object_get(j, "sequence")), &half);
    int32_t *steps = tensor(file, c.name, "evict_step", &kv_shape);
    c.recall = recall;
    c.attention = attention;
    c.evict_step = steps;
    c.n_layer = (int)shape[0];
    c.n_head = (int)shape[1];
    c.n_kv_head = (int)kv_shape[1];
    c.n_token = (int)shape[2];
    CU_ASSERT_FATAL(half[2] == shape[2] * (shape[2] + 1) / 2);
    c.prefill = whole(j, "prefill", 0);
    c.seen = xcalloc((size_t)c.n_token, sizeof *c.seen);
    for (int layer = 0; layer < c.n_layer; layer++) {
        const json_t *per_layer = json_object_get(c.params, "budget_per_layer");
        c.budget = per_layer ? (int)json_integer_value(json_array_get(per_layer, (size_t)layer))
                             : whole(c.params, "budget", c.n_token);
        for (int head = 0; head < c.n_kv_head; head++)
            replay_head(&c, layer, head);
    }
    if (c.wrong)
        printf("# %s: %d tokens differ\n", c.name, c.wrong);
    CU_ASSERT_EQUAL(c.wrong, 0);
    free(c.seen);
    free(recall);
    free(attention);
    free(steps);
}

static void offline_reference(void)
{
    const char *path = tap_golden("policies/offline.json");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *cases = json_object_get(root, "cases"), *j;
    struct sh_weights *file = sh_weights_open(tap_golden("policies/offline.safetensors"), &e);
    size_t i;
    struct sh_weights *rows = sh_weights_open(tap_golden("policies/attention.safetensors"), &e);
    CU_ASSERT_FATAL(file && rows && json_array_size(cases) > 60);
    json_array_foreach(cases, i, j)
        replay_case(j, file, rows);
    sh_weights_close(file);
    sh_weights_close(rows);
    json_decref(root);
}

/* scissorhands.md 1.10: seven tokens, six of them cached when the seventh comes; counted by hand. */
static void worked_example(const char *threshold, const char *policy, const int leaves[3])
{
    static const float row[][7] = {
        {1}, {.5f, .5f}, {.4f, .3f, .3f}, {.3f, .3f, .2f, .2f}, {.30f, .05f, .40f, .05f, .20f},
        {.25f, .05f, .30f, .20f, .05f, .15f}, {.40f, .02f, .18f, .05f, .20f, .05f, .10f}};
    struct sh_policy_spec spec;
    char text[128];
    int dropped[8], found = 0;
    snprintf(text, sizeof text, "%s:window=3,recent=1,drop=3,threshold=%s", policy, threshold);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(text, &spec, &e), 0);
    struct sh_kept_setup setup = {.spec = &spec, .budget = 7, .n_token = 8, .n_layer = 1};
    struct sh_kept *k = sh_kept_new(&setup);
    for (int t = 0; t < 7; t++) {
        CU_ASSERT_EQUAL(sh_kept_make_room(k, t, NULL, NULL), 0);
        int slot = sh_kept_admit(k, t);
        CU_ASSERT_EQUAL_FATAL(slot, t);
        struct sh_step step = {.t = t, .n_row = t + 1, .row = row[t]};
        sh_kept_observe(k, &step);
    }
    CU_ASSERT_EQUAL_FATAL(sh_kept_make_room(k, 7, NULL, dropped), 3);
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < 3; w++)
            found += dropped[i] == leaves[w] - 1;
    CU_ASSERT_EQUAL(found, 3);
    sh_kept_free(k);
}

static void example_of_the_paper(void)
{
    static const int by_time[] = {2, 4, 5}, by_row[] = {2, 4, 6};
    worked_example("t", "scissorhands", by_time);
    worked_example("i", "scissorhands", by_row);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"kept sets and kept mass equal the fixtures'", offline_reference},
        {"the worked example, both readings of the threshold", example_of_the_paper},
        {NULL, NULL}};
    return tap_run("replay", tests);
}
