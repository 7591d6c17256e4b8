/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity calculator against exact arithmetic in Python (tests/golden/capacity.json, made by
 * tests/oracle/capacity.py): every byte and every count; rates to the last digits of a double. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/catalog/catalog.h"
#include "src/app/capacity/capacity_ask.h"
#include "tests/tap.h"

static struct sh_err e;

static long long whole(const json_t *o, const char *key, long long otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static const char *word(const json_t *o, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : otherwise;
}

static void model(const char *name, struct sh_kv_shape *out)
{
    const struct sh_catalog c = {.built_in = sh_catalog_models};
    char at[256];
    struct sh_kv_facts f;
    const char *row = sh_catalog_find(&c, name, at);
    CU_ASSERT_FATAL(row && !sh_kv_facts_row(row, at, &f, &e) && !sh_kv_shape_build(&f, out, &e));
}

static void board(const char *name, struct sh_gpu *out)
{
    const struct sh_catalog c = {.built_in = sh_catalog_gpus};
    char at[256];
    const char *row = sh_catalog_find(&c, name, at);
    CU_ASSERT_FATAL(row && !sh_gpu_row(row, at, out, &e));
}

static void read_args(const json_t *c, struct sh_capacity_args *a)
{
    *a = (struct sh_capacity_args){.reserve = -1, .bandwidth = -1, .flops = -1, .price = -1};
    a->kv = word(c, "kv", "f16");
    a->weights = word(c, "weights", NULL);
    a->budget = word(c, "budget", NULL);
    a->windows = word(c, "windows", "model");
    a->tp = "1";
    a->length = whole(c, "length", 0);
    a->batch = whole(c, "batch", 0);
    a->pp = whole(c, "pp", 1);
    a->ep = whole(c, "ep", 1);
    a->page = whole(c, "page", 1);
    a->headroom = whole(c, "headroom", 0);
    a->prefix = whole(c, "prefix", 0);
    a->state = whole(c, "state", 0);
    a->lora = whole(c, "lora", 0);
    a->lora_rank = whole(c, "rank", 0);
    a->memory = (size_t)whole(c, "memory", 0);
    a->overhead = (size_t)whole(c, "overhead", 0);
    a->util = json_object_get(c, "util") ? json_number_value(json_object_get(c, "util")) : -1;
}

static int same(const char *what, const json_t *expect, uint64_t found)
{
    const json_t *v = json_object_get(expect, what);
    if (!v || (uint64_t)json_integer_value(v) == found)
        return 1;
    printf("# %s: expected %lld, found %llu\n", what, (long long)json_integer_value(v), (unsigned long long)found);
    return 0;
}

static int same_rate(const char *what, const json_t *expect, double found)
{
    const json_t *v = json_object_get(expect, what);
    if (!json_is_real(v) || fabs(found / json_real_value(v) - 1) < 1e-12)
        return 1;
    printf("# %s: expected %.17g, found %.17g\n", what, json_real_value(v), found);
    return 0;
}

static void check(const json_t *entry)
{
    const json_t *c = json_object_get(entry, "case"), *x = json_object_get(entry, "expect");
    struct sh_capacity_args args;
    struct sh_capacity_settings settings;
    struct sh_kv_shape shape, draft = {.layer = NULL};
    struct sh_gpu b;
    struct sh_capacity_ask ask;
    struct sh_capacity got;
    uint64_t *layers = NULL;
    read_args(c, &args);
    model(word(c, "model", ""), &shape);
    board(word(c, "gpu", "A100-SXM-80GB"), &b);
    if (json_object_get(c, "draft"))
        model(word(c, "draft", ""), &draft);
    CU_ASSERT_FATAL(!sh_capacity_settings(&args, &settings, &e));
    struct sh_capacity_question q = {&shape, draft.layer ? &draft : NULL, &b, args.kv, args.budget,
                                     (int)whole(c, "tp", 1)};
    CU_ASSERT_FATAL(!sh_capacity_ask_fill(&args, &settings, &q, &ask, &layers, &e) && !sh_capacity(&ask, &got, &e));
    const struct sh_capacity_stage *g = &got.stage[got.fullest];
    int good = same("limit", x, got.limit) & same("weights", x, g->weights) & same("room", x, got.room) &
               same("token", x, g->kv.token) & same("sequence", x, g->kv.sequence) & same("prefix", x, g->kv.prefix) &
               same("max_batch", x, got.max_batch) & same("max_length", x, got.max_length) &
               same("with_prompt", x, got.with_prompt) &
               same("max_budget", x, got.max_budget) & same_rate("decode_rate", x, got.decode_rate) &
               same_rate("prefill_rate", x, got.prefill_rate);
    char *text = json_dumps(c, JSON_COMPACT);
    if (!good)
        printf("# %s\n", text);
    CU_ASSERT(good);
    free(text);
    free(layers);
    sh_kv_shape_clear(&shape);
    sh_kv_shape_clear(&draft);
}

static void against_python(void)
{
    const char *path = tap_golden("capacity.json");
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
    const json_t *entry;
    size_t i;
    CU_ASSERT_FATAL(json_array_size(root) >= 40);
    json_array_foreach(root, i, entry)
        check(entry);
    printf("# %zu cases\n", json_array_size(root));
    json_decref(root);
}

/* A group that cannot be is refused; so are lengths beyond the longest. */
static void refusals(void)
{
    struct sh_kv_shape shape;
    struct sh_capacity c;
    model("opt-6.7b", &shape);
    struct sh_capacity_ask a = {.shape = &shape, .tp = 1, .pp = 1, .ep = 1, .memory = (uint64_t)80 << 30, .util = 1,
                                .bandwidth = 1e12, .peak = 1e14, .length = 2048, .rule = {.page = 1}};
    CU_ASSERT_FATAL(!sh_weight_types_published(&shape.f, &a.weights, &e));
    CU_ASSERT(!sh_kv_type_parse("f16", &a.rule.k, &e) && !sh_kv_type_parse("f16", &a.rule.v, &e));
    CU_ASSERT(sh_capacity(&a, &c, &e) == 0 && c.max_batch == 67);
    a.pp = 33;
    CU_ASSERT(sh_capacity(&a, &c, &e) == -1 && strstr(e.text, "33 pipeline stages"));
    a.pp = 1;
    a.ep = 2;
    CU_ASSERT(sh_capacity(&a, &c, &e) == -1 && strstr(e.text, "--ep 2"));
    a.ep = 1;
    a.length = (uint64_t)SH_KV_MOST_TOKENS + 1;
    CU_ASSERT(sh_capacity(&a, &c, &e) == -1 && e.status == SH_MISUSED);
    a.length = SH_KV_MOST_TOKENS;       /* 512 TiB: a number, and an answer */
    CU_ASSERT(sh_capacity(&a, &c, &e) == 0 && c.max_batch == 0 && !strcmp(c.unfit, "cache of the sequences"));
    CU_ASSERT(c.shortfall == ((uint64_t)SH_KV_MOST_TOKENS << 19) - c.room);
    sh_kv_shape_clear(&shape);
}

/* Sums and products that go over 64 bits stay at the largest number. */
static void saturation(void)
{
    CU_ASSERT(sh_kv_mul(UINT64_MAX, 2) == UINT64_MAX && sh_kv_mul(0, UINT64_MAX) == 0 && sh_kv_mul(3, 5) == 15);
    CU_ASSERT(sh_kv_add(UINT64_MAX, 1) == UINT64_MAX && sh_kv_add(1, 2) == 3);
}

static void number_formats(void)
{
    static const struct { const char *text; uint64_t of128; } cells[] = {
        {"f32", 512}, {"f16", 256}, {"bf16", 256}, {"f8", 128}, {"int8", 128}, {"int8:scale=32", 132}, {"q8_0", 136},
        {"q4_0", 72}, {"nvfp4", 72}, {"mxfp4", 68}, {"int4", 72}, {"int4:group=64:scale=16:zero=0", 68},
        {"F16", 256}, {"fp8", 128}, {"bfloat16", 256}};
    static const char *const wrong[] = {"", "f64", "f16x", "int4:", "int4:group", "int4:group=", "int4:group=-1",
                                        "int4:scale=3",
                                        "int4:group=99999999", "int4:rows=3", "F17"};
    struct sh_kv_type t;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        CU_ASSERT(!sh_kv_type_parse(cells[i].text, &t, &e) && sh_kv_type_bytes(&t, 128) == cells[i].of128);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(sh_kv_type_parse(wrong[i], &t, &e) == -1 && e.status == SH_MISUSED);
    CU_ASSERT(!sh_kv_type_parse("int4", &t, &e) && sh_kv_type_bytes(&t, 80) == 72);     /* the last group is whole */
    CU_ASSERT(!sh_kv_type_parse("f8:block=128", &t, &e) && sh_kv_type_matrix(&t, 200, 300) == 200 * 300 + 2 * 3 * 4);
}

/* One step of the roofline, by hand: 10 GB of weights, half of two experts' 4 GB each for one token. */
static void roofline(void)
{
    struct sh_roofline r = {.plain_bytes = 9e9, .head_bytes = 1e9, .expert_bytes = 8e9, .expert_share = 0.5,
                            .token_flops = 2e10,
                            .head_flops = 1e9, .link_bytes = 1e6, .bandwidth = 1e12, .peak = 1e14, .link = 1e11,
                            .ranks = 1};
    struct sh_step_work w = {.tokens = 1, .logits = 1, .cache_bytes = 2e9, .attention_flops = 3e9};
    struct sh_step_time s = sh_roofline_step(&r, &w);
    CU_ASSERT_DOUBLE_EQUAL(s.bytes, 16e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(s.flops, 2.4e10, 1);
    CU_ASSERT_DOUBLE_EQUAL(s.s, 16e-3 + 1e-5, 1e-12);
    CU_ASSERT(s.bound == SH_BOUND_BANDWIDTH);
    w = (struct sh_step_work){.tokens = 1000};
    s = sh_roofline_step(&r, &w);       /* no logits: the head is not read; all experts are */
    CU_ASSERT_DOUBLE_EQUAL(s.bytes, 17e9, 1);
    CU_ASSERT(s.bound == SH_BOUND_COMPUTE);
    r.link = 1e8;
    CU_ASSERT(sh_roofline_step(&r, &w).bound == SH_BOUND_LINK);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"every byte as exact arithmetic in Python has it", against_python},
        {"groups and lengths that cannot be", refusals},
        {"64 bits are enough, or everything is too much", saturation},
        {"number formats with their scales", number_formats},
        {"a step of the roofline", roofline},
        {NULL, NULL}};
    return tap_run("capacity", tests);
}
